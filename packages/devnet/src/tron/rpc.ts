import { keccak_256 } from '@noble/hashes/sha3.js'
import type { Abi } from 'viem'
import { artefact } from '../ethereum/networks.ts'
import type { Faults } from '../faults.ts'
import { sha256, toHex } from './address.ts'
import { BLOCK_VERSION, SOLID_DEPTH, WITNESS, witnessSignature, type Block, type Included, type TronChain } from './chain.ts'
import { delegatable, limitOf, matured, PARAMETERS, Refusal, slotOf, unfreezesLeft, usedOf, weightOf, type Account } from './ledger.ts'
import { readTransaction, RESOURCE_NAMES, signedHex, toJson, transactionJson, withBase58, type Tx, type Value } from './transaction.ts'

type Body = Record<string, unknown>
/** `solid`: asked of the final part of the chain. */
type Context = { chain: TronChain; body: Body; visible: boolean; solid: boolean }
type Method = (context: Context) => unknown

const BROADCASTS = new Set(['broadcasttransaction', 'broadcasthex'])
const AT_ONCE_MAX = 100
const hexText = (text: string): string => Buffer.from(text, 'utf8').toString('hex')

/** One request of java-tron's HTTP interface; undefined when there is to be no answer. */
export async function tronRpc(
  chain: TronChain, faults: Faults, path: string, text: string
): Promise<{ status: number; body: string } | undefined> {
  const [side, name = ''] = path.split('/')
  const solid = side === 'walletsolidity'
  const method = solid || side === 'wallet' ? METHODS[name] : undefined
  if (!method || (solid && BUILDERS.has(name))) return { status: 404, body: '{"Error":"Not Found"}' }
  try {
    const body = text.trim() === '' ? {} : (JSON.parse(text) as Body)
    if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Error('the body is no JSON object')
    if (BROADCASTS.has(name) && faults.mode === 'reject') {
      return { status: 200, body: toJson({ code: 'SERVER_BUSY', message: hexText('the server is busy') }) }
    }
    const visible = body['visible'] === true || body['visible'] === 'true'
    const answer = await chain.gate.read(async () => method({ chain, body, visible, solid }))
    if (BROADCASTS.has(name) && faults.mode === 'drop-answer') return undefined
    return { status: 200, body: toJson(visible ? withBase58(answer) : answer) }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return { status: 200, body: toJson({ Error: `class ${error.name} : ${error.message}` }) }
  }
}

function addressOf(body: Body, name: string): string {
  const address = toHex(body[name])
  if (address === undefined) throw new Error(`INVALID ${name}: ${String(body[name])}`)
  return address
}

function wholeOf(body: Body, name: string): bigint {
  const value = body[name]
  if ((typeof value !== 'number' || !Number.isSafeInteger(value)) && !(typeof value === 'string' && /^\d{1,19}$/.test(value))) {
    throw new Error(`INVALID ${name}: ${String(value)}`)
  }
  return BigInt(value)
}

function resourceOf(body: Body, name = 'resource'): 0 | 1 {
  const value = body[name] ?? 0
  if (value === 1 || value === 'ENERGY') return 1
  if (value === 0 || value === 'BANDWIDTH') return 0
  throw new Error(`INVALID resource: ${String(value)}`)
}

/** Zero and empty fields are left out, as nodes do. */
function filled(json: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(json).filter(
      ([, value]) => value !== undefined && value !== 0 && value !== 0n && value !== '' && !(Array.isArray(value) && value.length === 0)
    )
  )
}

function headerJson(block: Block): Record<string, unknown> {
  const { id, number, time, parent, root } = block
  return {
    blockID: id,
    block_header: {
      raw_data: filled({ number, txTrieRoot: root, witness_address: WITNESS, parentHash: parent, version: BLOCK_VERSION, timestamp: time }),
      witness_signature: witnessSignature(block),
    },
  }
}

function includedJson({ tx, outcome }: Included, visible: boolean): Record<string, unknown> {
  return { ret: [{ contractRet: outcome.contractRet }], ...transactionJson(tx, visible) }
}

function blockJson(block: Block | undefined, visible: boolean, detail = true): Record<string, unknown> {
  if (!block) return {}
  return {
    ...headerJson(block),
    ...(detail && block.transactions.length > 0 ? { transactions: block.transactions.map((each) => includedJson(each, visible)) } : {}),
  }
}

function infoJson(block: Block, { tx, outcome }: Included): Record<string, unknown> {
  const isCall = tx.type === 'TriggerSmartContract'
  return filled({
    id: tx.id, fee: outcome.fee, blockNumber: block.number, blockTimeStamp: block.time, contractResult: [outcome.output],
    contract_address: isCall ? String(tx.value['contract_address']) : undefined,
    receipt: filled({
      energy_usage: outcome.energyUsage, energy_fee: outcome.energyFee, energy_usage_total: outcome.energyTotal,
      energy_penalty_total: outcome.energyPenalty, net_usage: outcome.netUsage, net_fee: outcome.netFee,
      result: isCall ? outcome.contractRet : undefined,
    }),
    log: outcome.logs, result: outcome.contractRet === 'SUCCESS' ? undefined : 'FAILED', resMessage: hexText(outcome.message),
    withdraw_expire_amount: outcome.withdrawn,
  })
}

/** What is asked for by id, where it is in the part of the chain that is asked. */
function placeOf({ chain, body, solid }: Context): { block: Block; included: Included } | undefined {
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

function accountJson(account: Account, chain: TronChain): Record<string, unknown> {
  const slot = slotOf(chain.head.time)
  return filled({
    address: account.address, balance: account.balance, create_time: account.created, net_usage: usedOf(account.usage[0], slot),
    free_net_usage: usedOf(account.free, slot),
    frozenV2: [filled({ amount: account.frozen[0] }), filled({ type: 'ENERGY', amount: account.frozen[1] }), { type: 'TRON_POWER' }],
    unfrozenV2: account.unfreezing.map(({ resource, amount, expires }) =>
      filled({ type: resource === 1 ? 'ENERGY' : undefined, unfreeze_amount: amount, unfreeze_expire_time: expires })
    ),
    delegated_frozenV2_balance_for_bandwidth: account.lent[0], acquired_delegated_frozenV2_balance_for_bandwidth: account.borrowed[0],
    account_resource: filled({
      energy_usage: usedOf(account.usage[1], slot), delegated_frozenV2_balance_for_energy: account.lent[1],
      acquired_delegated_frozenV2_balance_for_energy: account.borrowed[1],
    }),
    net_window_size: 28_800_000, net_window_optimized: true,
  })
}

function resourcesJson({ chain, body }: Context): Record<string, unknown> {
  const draft = chain.accounts
  const account = draft.account(addressOf(body, 'address'))
  if (!account) return {}
  const slot = slotOf(chain.head.time)
  return filled({
    freeNetUsed: usedOf(account.free, slot), freeNetLimit: PARAMETERS.getFreeNetLimit, NetUsed: usedOf(account.usage[0], slot),
    NetLimit: limitOf(draft, account, 0), TotalNetLimit: PARAMETERS.getTotalNetLimit, TotalNetWeight: weightOf(draft, 0),
    EnergyUsed: usedOf(account.usage[1], slot), EnergyLimit: limitOf(draft, account, 1),
    TotalEnergyLimit: PARAMETERS.getTotalEnergyCurrentLimit, TotalEnergyWeight: weightOf(draft, 1),
  })
}

async function broadcast(
  chain: TronChain, hex: string, extra: (tx: Tx | undefined) => Record<string, unknown>, spell: (message: string) => string
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
    return { ...extra(undefined), code: error.code, ...(id === undefined ? {} : { txid: id }), message: spell(error.message) }
  }
}

/** The JSON form of a transaction: its id and its fields must be those of its bytes. */
function hexOfJson(body: Body): string {
  const raw = body['raw_data_hex']
  const signatures = body['signature']
  if (typeof raw !== 'string' || !/^(?:[0-9a-fA-F]{2})+$/.test(raw)) throw new Error('INVALID raw_data_hex')
  const hex = signedHex(
    Buffer.from(raw, 'hex'),
    (Array.isArray(signatures) ? signatures : []).map((each) => Buffer.from(String(each).replace(/^0x/, ''), 'hex'))
  )
  if (body['txID'] !== undefined && body['txID'] !== sha256(Buffer.from(raw, 'hex')).toString('hex')) {
    throw new Error('INVALID txID: it is not the hash of raw_data')
  }
  return hex
}

function selectorData(body: Body): string {
  if (typeof body['data'] === 'string' && body['data'] !== '') return body['data'].replace(/^0x/, '').toLowerCase()
  const selector = String(body['function_selector'] ?? '')
  const data =
    Buffer.from(keccak_256(Buffer.from(selector)))
      .toString('hex')
      .slice(0, 8) +
    String(body['parameter'] ?? '')
      .replace(/^0x/, '')
      .toLowerCase()
  if (!/^[0-9a-f]*$/.test(data)) throw new Error('INVALID parameter')
  return data
}

async function simulate({ chain, body, visible }: Context): Promise<Record<string, unknown>> {
  const from = addressOf(body, 'owner_address')
  const to = addressOf(body, 'contract_address')
  if (!chain.tvm.isContract(to)) return { result: { code: 'CONTRACT_VALIDATE_ERROR', message: hexText('Smart contract is not exist.') } }
  const data = selectorData(body)
  const result = await chain.tvm.simulate({ from, to, data })
  const tx = chain.build('TriggerSmartContract', { owner_address: from, contract_address: to, data })
  return {
    result: { result: true, ...(result.reverted ? { message: hexText('REVERT opcode executed') } : {}) },
    energy_used: result.energy, ...(result.penalty > 0 ? { energy_penalty: result.penalty } : {}), constant_result: [result.output],
    ...(result.logs.length > 0 ? { logs: result.logs } : {}),
    transaction: { ret: [result.reverted ? { ret: 'FAILED' } : {}], ...transactionJson(tx, visible) },
  }
}

/** What a node builds for who asks it; it is not checked before it is broadcast. */
const builder =
  (type: string, value: (body: Body) => Value): Method =>
  ({ chain, body, visible }) =>
    transactionJson(chain.build(type, { owner_address: addressOf(body, 'owner_address'), ...value(body) }), visible)

const BUILDER_METHODS: Record<string, Method> = {
  createtransaction: builder('TransferContract', (body) => ({
    to_address: addressOf(body, 'to_address'), amount: wholeOf(body, 'amount'),
  })),
  freezebalancev2: builder('FreezeBalanceV2Contract', (body) => ({
    frozen_balance: wholeOf(body, 'frozen_balance'), resource: RESOURCE_NAMES[resourceOf(body)],
  })),
  unfreezebalancev2: builder('UnfreezeBalanceV2Contract', (body) => ({
    unfreeze_balance: wholeOf(body, 'unfreeze_balance'), resource: RESOURCE_NAMES[resourceOf(body)],
  })),
  withdrawexpireunfreeze: builder('WithdrawExpireUnfreezeContract', () => ({})),
  delegateresource: builder('DelegateResourceContract', (body) => ({
    receiver_address: addressOf(body, 'receiver_address'), balance: wholeOf(body, 'balance'), resource: RESOURCE_NAMES[resourceOf(body)],
    lock: body['lock'] === true,
  })),
  undelegateresource: builder('UnDelegateResourceContract', (body) => ({
    receiver_address: addressOf(body, 'receiver_address'), balance: wholeOf(body, 'balance'), resource: RESOURCE_NAMES[resourceOf(body)],
  })),
  triggersmartcontract: ({ chain, body, visible }) => {
    const to = addressOf(body, 'contract_address')
    if (!chain.tvm.isContract(to)) {
      return {
        result: {
          code: 'CONTRACT_VALIDATE_ERROR', message: hexText('Contract validate error : No contract or not a valid smart contract'),
        },
      }
    }
    const value = {
      owner_address: addressOf(body, 'owner_address'), contract_address: to, data: selectorData(body),
      call_value: wholeOf({ call_value: 0, ...body }, 'call_value'),
    }
    return {
      result: { result: true },
      transaction: transactionJson(chain.build('TriggerSmartContract', value, wholeOf({ fee_limit: 0, ...body }, 'fee_limit')), visible),
    }
  },
  broadcasttransaction: ({ chain, body }) => broadcast(chain, hexOfJson(body), () => ({}), hexText),
  broadcasthex: ({ chain, body, visible }) =>
    broadcast(
      chain, String(body['transaction']).toLowerCase(),
      (tx) => ({
        code: 'SUCCESS', message: '', ...(tx ? { transaction: JSON.stringify(JSON.parse(toJson(transactionJson(tx, visible)))) } : {}),
      }),
      (message) => message
    ),
}
const BUILDERS = new Set(Object.keys(BUILDER_METHODS))

const METHODS: Record<string, Method> = {
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
      typeof key === 'string' && key.length === 64 && block?.id !== key ? undefined : block, context.visible,
      body['detail'] === true || body['detail'] === 'true'
    )
  },
  getblockbynum: (context) => blockJson(blockAt(context, Number(wholeOf({ num: 0, ...context.body }, 'num'))), context.visible),
  getblockbyid: (context) => {
    const id = String(context.body['value'])
    const block = blockAt(context, Number.parseInt(id.slice(0, 16), 16))
    return blockJson(block?.id === id ? block : undefined, context.visible)
  },
  getblockbylimitnext: (context) => {
    const [start, end] = [Number(wholeOf(context.body, 'startNum')), Number(wholeOf(context.body, 'endNum'))]
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
    const { freeNetUsed, freeNetLimit, NetUsed, NetLimit, TotalNetLimit, TotalNetWeight } = resourcesJson(context)
    return filled({ freeNetUsed, freeNetLimit, NetUsed, NetLimit, TotalNetLimit, TotalNetWeight })
  },
  getchainparameters: () => ({ chainParameter: Object.entries(PARAMETERS).map(([key, value]) => ({ key, value })) }),
  getenergyprices: () => ({ prices: `0:${PARAMETERS.getEnergyFee}` }),
  getbandwidthprices: () => ({ prices: `0:${PARAMETERS.getTransactionFee}` }),
  getcandelegatedmaxsize: ({ chain, body }) => {
    const draft = chain.accounts
    const account = draft.account(addressOf(body, 'owner_address'))
    return filled({ max_size: account ? delegatable(draft, account, resourceOf(body, 'type'), slotOf(chain.head.time)) : 0n })
  },
  getavailableunfreezecount: (context) => filled({ count: unfreezesLeft(accountOf(context, 'owner_address'), context.chain.head.time) }),
  getcanwithdrawunfreezeamount: (context) => {
    const account = accountOf(context, 'owner_address')
    const time = context.body['timestamp'] === undefined ? context.chain.head.time : Number(wholeOf(context.body, 'timestamp'))
    return filled({ amount: account ? matured(account, time) : 0n })
  },
  getdelegatedresourcev2: ({ chain, body }) => {
    const [from, to] = [addressOf(body, 'fromAddress'), addressOf(body, 'toAddress')]
    const [bandwidth, energy] = chain.delegations.delegation(from + to) ?? [0n, 0n]
    return {
      delegatedResource:
        bandwidth + energy === 0n ? [] : [filled({ from, to, frozen_balance_for_bandwidth: bandwidth, frozen_balance_for_energy: energy })],
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
      origin_address: token.owner, contract_address: address, abi: { entrys: entries(abi) }, bytecode: bytecode.slice(2), name: token.asset,
      consume_user_resource_percent: 100,
    }
  },
  validateaddress: ({ body }) => {
    const isValid = toHex(body['address']) !== undefined
    return { result: isValid, message: isValid ? 'Base58check format' : 'Invalid address' }
  },
  getnodeinfo: ({ chain }) => ({
    beginSyncNum: 0, block: `Num:${chain.head.number},ID:${chain.head.id}`,
    solidityBlock: `Num:${chain.head.number - SOLID_DEPTH},ID:${chain.solid.id}`, currentConnectCount: 0,
    configNodeInfo: { codeVersion: '4.8.1', p2pVersion: '0' },
  }),
}

/** ABI types begin with capitals in java-tron. */
function entries(abi: Abi): unknown[] {
  return (abi as unknown as { type: string; stateMutability?: string }[]).map((entry) => ({
    ...entry, type: entry.type.replace(/^./, (letter) => letter.toUpperCase()),
    ...(entry.stateMutability ? { stateMutability: entry.stateMutability.replace(/^./, (letter) => letter.toUpperCase()) } : {}),
  }))
}
