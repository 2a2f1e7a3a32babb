import { artefact } from '../evm/contracts.ts'
import { toHex } from './address.ts'
import { SOLID_DEPTH, type Block, type Included, type TronChain } from './chain.ts'
import {
  delegatable,
  limitOf,
  matured,
  PARAMETERS,
  Refusal,
  slotOf,
  unfreezesLeft,
  usedOf,
  weightOf,
  type Account,
} from './rules.ts'
import { addressOf, hexOfJson, resourceOf, selectorData, wholeOf, type Body } from './parameters.ts'
import {
  abiEntries,
  accountJson,
  blockJson,
  filled,
  hexText,
  includedJson,
  infoJson,
} from './api-objects.ts'
import {
  readTransaction,
  RESOURCE_NAMES,
  toJson,
  transactionJson,
  type Tx,
  type Value,
} from './transaction.ts'

/** `solid`: the request concerns only the final part of the chain. */
type Context = { chain: TronChain; body: Body; visible: boolean; solid: boolean }
type Method = (context: Context) => unknown

const AT_ONCE_MAX = 100

/** Returns the requested transaction if it is in the requested part of the chain. */
function placeOf({
  chain,
  body,
  solid,
}: Context): { block: Block; included: Included } | undefined {
  const place = chain.place(String(body['value']))
  return place && solid && place.block.number > chain.solid.number ? undefined : place
}

function headOf({ chain, solid }: Context): Block {
  return solid ? chain.solid : chain.head
}

function blockAt(context: Context, number: number): Block | undefined {
  return number > headOf(context).number ? undefined : context.chain.block(number)
}

function accountOf({ chain, body }: Context, name = 'address'): Account | undefined {
  return chain.accounts.account(addressOf(body, name))
}

function resourcesJson({ chain, body }: Context): Record<string, unknown> {
  const draft = chain.accounts
  const account = draft.account(addressOf(body, 'address'))
  if (!account) return {}
  const slot = slotOf(chain.head.time)
  return filled({
    freeNetUsed: usedOf(account.free, slot),
    freeNetLimit: PARAMETERS.getFreeNetLimit,
    NetUsed: usedOf(account.usage[0], slot),
    NetLimit: limitOf(draft, account, 0),
    TotalNetLimit: PARAMETERS.getTotalNetLimit,
    TotalNetWeight: weightOf(draft, 0),
    EnergyUsed: usedOf(account.usage[1], slot),
    EnergyLimit: limitOf(draft, account, 1),
    TotalEnergyLimit: PARAMETERS.getTotalEnergyCurrentLimit,
    TotalEnergyWeight: weightOf(draft, 1),
  })
}

async function broadcast(
  chain: TronChain,
  hex: string,
  extra: (tx: Tx | undefined) => Record<string, unknown>,
  spell: (message: string) => string,
): Promise<unknown> {
  try {
    const tx = await chain.broadcast(hex)
    return { result: true, ...extra(tx), txid: tx.id }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    let id: string | undefined
    try {
      id = readTransaction(hex).id
    } catch {}
    return {
      ...extra(undefined),
      code: error.code,
      ...(id === undefined ? {} : { txid: id }),
      message: spell(error.message),
    }
  }
}

async function simulate({ chain, body, visible }: Context): Promise<Record<string, unknown>> {
  const from = addressOf(body, 'owner_address')
  const to = addressOf(body, 'contract_address')
  if (!chain.tvm.isContract(to))
    return {
      result: { code: 'CONTRACT_VALIDATE_ERROR', message: hexText('Smart contract is not exist.') },
    }
  const data = selectorData(body)
  const result = await chain.tvm.simulate({ from, to, data })
  const tx = chain.build('TriggerSmartContract', {
    owner_address: from,
    contract_address: to,
    data,
  })
  return {
    result: {
      result: true,
      ...(result.reverted ? { message: hexText('REVERT opcode executed') } : {}),
    },
    energy_used: result.energy,
    ...(result.penalty > 0 ? { energy_penalty: result.penalty } : {}),
    constant_result: [result.output],
    ...(result.logs.length > 0 ? { logs: result.logs } : {}),
    transaction: {
      ret: [result.reverted ? { ret: 'FAILED' } : {}],
      ...transactionJson(tx, visible),
    },
  }
}

/** Handler that builds a transaction for a caller. It is not checked until it is broadcast. */
const builder =
  (type: string, value: (body: Body) => Value): Method =>
  ({ chain, body, visible }) =>
    transactionJson(
      chain.build(type, { owner_address: addressOf(body, 'owner_address'), ...value(body) }),
      visible,
    )

const BUILDER_METHODS: Record<string, Method> = {
  createtransaction: builder('TransferContract', (body) => ({
    to_address: addressOf(body, 'to_address'),
    amount: wholeOf(body, 'amount'),
  })),
  freezebalancev2: builder('FreezeBalanceV2Contract', (body) => ({
    frozen_balance: wholeOf(body, 'frozen_balance'),
    resource: RESOURCE_NAMES[resourceOf(body)],
  })),
  unfreezebalancev2: builder('UnfreezeBalanceV2Contract', (body) => ({
    unfreeze_balance: wholeOf(body, 'unfreeze_balance'),
    resource: RESOURCE_NAMES[resourceOf(body)],
  })),
  withdrawexpireunfreeze: builder('WithdrawExpireUnfreezeContract', () => ({})),
  delegateresource: builder('DelegateResourceContract', (body) => ({
    receiver_address: addressOf(body, 'receiver_address'),
    balance: wholeOf(body, 'balance'),
    resource: RESOURCE_NAMES[resourceOf(body)],
    lock: body['lock'] === true,
  })),
  undelegateresource: builder('UnDelegateResourceContract', (body) => ({
    receiver_address: addressOf(body, 'receiver_address'),
    balance: wholeOf(body, 'balance'),
    resource: RESOURCE_NAMES[resourceOf(body)],
  })),
  triggersmartcontract: ({ chain, body, visible }) => {
    const to = addressOf(body, 'contract_address')
    if (!chain.tvm.isContract(to)) {
      return {
        result: {
          code: 'CONTRACT_VALIDATE_ERROR',
          message: hexText('Contract validate error : No contract or not a valid smart contract'),
        },
      }
    }
    const value = {
      owner_address: addressOf(body, 'owner_address'),
      contract_address: to,
      data: selectorData(body),
      call_value: wholeOf({ call_value: 0, ...body }, 'call_value'),
    }
    return {
      result: { result: true },
      transaction: transactionJson(
        chain.build('TriggerSmartContract', value, wholeOf({ fee_limit: 0, ...body }, 'fee_limit')),
        visible,
      ),
    }
  },
  broadcasttransaction: ({ chain, body }) => broadcast(chain, hexOfJson(body), () => ({}), hexText),
  broadcasthex: ({ chain, body, visible }) =>
    broadcast(
      chain,
      String(body['transaction']).toLowerCase(),
      (tx) => ({
        code: 'SUCCESS',
        message: '',
        ...(tx
          ? { transaction: JSON.stringify(JSON.parse(toJson(transactionJson(tx, visible)))) }
          : {}),
      }),
      (message) => message,
    ),
}
/** Methods that are not served for the final part of the chain. */
export const BUILDERS: ReadonlySet<string> = new Set(Object.keys(BUILDER_METHODS))

/** All methods, by the last part of their path. */
export const METHODS: Record<string, Method> = {
  ...BUILDER_METHODS,
  getnowblock: (context) => blockJson(headOf(context), context.visible),
  getblock: (context) => {
    const { body } = context
    const key = body['id_or_num']
    const block =
      key === undefined
        ? headOf(context)
        : typeof key === 'string' && key.length === 64
          ? blockAt(context, Number.parseInt(key.slice(0, 16), 16))
          : blockAt(context, Number(key))
    return blockJson(
      typeof key === 'string' && key.length === 64 && block?.id !== key ? undefined : block,
      context.visible,
      body['detail'] === true || body['detail'] === 'true',
    )
  },
  getblockbynum: (context) =>
    blockJson(
      blockAt(context, Number(wholeOf({ num: 0, ...context.body }, 'num'))),
      context.visible,
    ),
  getblockbyid: (context) => {
    const id = String(context.body['value'])
    const block = blockAt(context, Number.parseInt(id.slice(0, 16), 16))
    return blockJson(block?.id === id ? block : undefined, context.visible)
  },
  getblockbylimitnext: (context) => {
    const [start, end] = [
      Number(wholeOf(context.body, 'startNum')),
      Number(wholeOf(context.body, 'endNum')),
    ]
    if (end <= start || end - start > AT_ONCE_MAX) return {}
    return {
      block: Array.from({ length: end - start }, (_, index) => blockAt(context, start + index))
        .filter((block) => block !== undefined)
        .map((block) => blockJson(block, context.visible)),
    }
  },
  gettransactionbyid: (context) => {
    const place = placeOf(context)
    return place ? includedJson(place.included, context.visible) : {}
  },
  gettransactioninfobyid: (context) => {
    const place = placeOf(context)
    return place ? infoJson(place.block, place.included) : {}
  },
  gettransactioninfobyblocknum: (context) => {
    const block = blockAt(context, Number(wholeOf({ num: 0, ...context.body }, 'num')))
    return block ? block.transactions.map((each) => infoJson(block, each)) : []
  },
  gettransactionfrompending: ({ chain, body, visible }) => {
    const tx = chain.pending.find(({ id }) => id === body['value'])
    return tx ? transactionJson(tx, visible) : {}
  },
  gettransactionlistfrompending: ({ chain }) => ({ txId: chain.pending.map(({ id }) => id) }),
  getpendingsize: ({ chain }) => ({ pendingSize: chain.pending.length }),
  getaccount: (context) => {
    const account = accountOf(context)
    return account ? accountJson(account, context.chain) : {}
  },
  getaccountresource: resourcesJson,
  getaccountnet: (context) => {
    const { freeNetUsed, freeNetLimit, NetUsed, NetLimit, TotalNetLimit, TotalNetWeight } =
      resourcesJson(context)
    return filled({ freeNetUsed, freeNetLimit, NetUsed, NetLimit, TotalNetLimit, TotalNetWeight })
  },
  getchainparameters: () => ({
    chainParameter: Object.entries(PARAMETERS).map(([key, value]) => ({ key, value })),
  }),
  getenergyprices: () => ({ prices: `0:${PARAMETERS.getEnergyFee}` }),
  getbandwidthprices: () => ({ prices: `0:${PARAMETERS.getTransactionFee}` }),
  getcandelegatedmaxsize: ({ chain, body }) => {
    const draft = chain.accounts
    const account = draft.account(addressOf(body, 'owner_address'))
    return filled({
      max_size: account
        ? delegatable(draft, account, resourceOf(body, 'type'), slotOf(chain.head.time))
        : 0n,
    })
  },
  getavailableunfreezecount: (context) =>
    filled({ count: unfreezesLeft(accountOf(context, 'owner_address'), context.chain.head.time) }),
  getcanwithdrawunfreezeamount: (context) => {
    const account = accountOf(context, 'owner_address')
    const time =
      context.body['timestamp'] === undefined
        ? context.chain.head.time
        : Number(wholeOf(context.body, 'timestamp'))
    return filled({ amount: account ? matured(account, time) : 0n })
  },
  getdelegatedresourcev2: ({ chain, body }) => {
    const [from, to] = [addressOf(body, 'fromAddress'), addressOf(body, 'toAddress')]
    const [bandwidth, energy] = chain.delegations.delegation(from + to) ?? [0n, 0n]
    return {
      delegatedResource:
        bandwidth + energy === 0n
          ? []
          : [
              filled({
                from,
                to,
                frozen_balance_for_bandwidth: bandwidth,
                frozen_balance_for_energy: energy,
              }),
            ],
    }
  },
  getdelegatedresourceaccountindexv2: ({ chain, body }) => {
    const account = addressOf(body, 'value')
    const { to, from } = chain.delegations.delegationsOf(account)
    return filled({ account, fromAccounts: from, toAccounts: to })
  },
  triggerconstantcontract: simulate,
  estimateenergy: async (context) => {
    const { result, energy_used } = await simulate(context)
    return { result, energy_required: energy_used }
  },
  getcontract: ({ chain, body }) => {
    const address = addressOf(body, 'value')
    const token = chain.tokens.find((candidate) => candidate.address === address)
    if (!token) return {}
    const { abi, bytecode } = artefact(token.artefact)
    return {
      origin_address: token.owner,
      contract_address: address,
      abi: { entrys: abiEntries(abi) },
      bytecode: bytecode.slice(2),
      name: token.asset,
      consume_user_resource_percent: 100,
    }
  },
  validateaddress: ({ body }) => {
    const isValid = toHex(body['address']) !== undefined
    return { result: isValid, message: isValid ? 'Base58check format' : 'Invalid address' }
  },
  getnodeinfo: ({ chain }) => ({
    beginSyncNum: 0,
    block: `Num:${chain.head.number},ID:${chain.head.id}`,
    solidityBlock: `Num:${chain.head.number - SOLID_DEPTH},ID:${chain.solid.id}`,
    currentConnectCount: 0,
    configNodeInfo: { codeVersion: '4.8.1', p2pVersion: '0' },
  }),
}
