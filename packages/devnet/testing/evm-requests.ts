import { secp256k1 } from '@noble/curves/secp256k1.js'
import {
  concatHex,
  encodeDeployData,
  encodeFunctionData,
  erc20Abi,
  keccak256,
  parseEther,
  parseGwei,
  parseTransaction,
  recoverTransactionAddress,
  serializeTransaction,
  toHex,
  toRlp,
  type Hex,
  type TransactionSerializedEIP1559,
} from 'viem'
import { privateKeyToAccount, sign as signHash } from 'viem/accounts'
import { artefact } from '../src/evm/contracts.ts'
import { FAUCET_KEY } from '../src/ethereum/networks.ts'
import { waitFor } from '../../../testing/wait-for.ts'
import type { RpcResponse } from './geth.ts'

export const CHAIN_ID = 31_337
/** Address of the first contract that the faucet deploys. */
const TOKEN: Hex = '0x5FbDB2315678afecb367f032d93F642f64180aa3'
const NOBODY: Hex = '0x00000000000000000000000000000000000000b0'
const NEW_ACCOUNT: Hex = '0x00000000000000000000000000000000000000b7'
const UNKNOWN: Hex = `0x${'ab'.repeat(32)}`
const TRANSFER_TOPIC = keccak256(toHex('Transfer(address,address,uint256)'))
const BALANCE = parseEther('5')
const GAS_CAP = 16_777_216n

/** A node that serves Ethereum's JSON-RPC, and its blocks. */
export interface EvmSide {
  send: (body: unknown) => Promise<RpcResponse>
  /** Makes a block that contains a transaction, which the node has accepted. */
  include: (hash: Hex) => Promise<void>
}

/** A node with the same history as the other one, up to hashes. */
export interface PreparedSide extends EvmSide {
  call: <T>(method: string, ...params: unknown[]) => Promise<T>
  /** Hashes of mined transactions. */
  paid: Hex
  legacy: Hex
  transferred: Hex
  failed: Hex
  created: Hex
  /** Hashes of transactions that wait for a block, and for a lower base fee. */
  waiting: Hex
  underpaid: Hex
  /** Hash and number of the block with the token transfer, and of the newest block. */
  block: Hex
  height: Hex
  head: Hex
  headHeight: bigint
}

export interface EvmRequest {
  name: string
  run: (side: PreparedSide) => Promise<RpcResponse>
}

const keyOf = (number: number): Hex => `0x${number.toString(16).padStart(64, '0')}`
/** Account of a request. Those up to {@link FUNDED} have coins. */
const accountOf = (number: number) => privateKeyToAccount(keyOf(0xa000 + number))
const FUNDED = 20
const POOR = accountOf(FUNDED + 1)
const holder = accountOf(1)

const transferCall = (to: Hex, amount: bigint): Hex =>
  encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] })
const balanceCall = (of: Hex): Hex =>
  encodeFunctionData({ abi: erc20Abi, functionName: 'balanceOf', args: [of] })

type Fields = {
  nonce?: number
  to?: Hex | undefined
  value?: bigint
  gas?: bigint
  max?: bigint
  tip?: bigint
  data?: Hex
  chainId?: number
}

/** Signs a transaction of type 2. The default fields are those of a valid payment of one wei. */
function sign(account: ReturnType<typeof accountOf>, fields: Fields): Promise<Hex> {
  const { nonce = 0, value = 1n, gas = 21_000n, chainId = CHAIN_ID, data } = fields
  return account.signTransaction({
    type: 'eip1559',
    chainId,
    nonce,
    to: 'to' in fields ? fields.to : NOBODY,
    value,
    gas,
    maxFeePerGas: fields.max ?? parseGwei('20'),
    maxPriorityFeePerGas: fields.tip ?? parseGwei('1'),
    ...(data === undefined ? {} : { data }),
  })
}

/** Signs a transaction whose tip exceeds its max fee, which viem does not sign. */
async function signTipAboveMax(number: number): Promise<Hex> {
  const [tip, max] = [parseGwei('3'), parseGwei('2')]
  const fields: (Hex | Hex[])[] = [
    ...[toHex(CHAIN_ID), '0x', toHex(tip), toHex(max), toHex(21_000), NOBODY, '0x01', '0x'].map(
      (field) => field as Hex,
    ),
    [],
  ]
  const encode = (values: (Hex | Hex[])[]) => concatHex(['0x02', toRlp(values)])
  const {
    r,
    s,
    yParity = 0,
  } = await signHash({
    hash: keccak256(encode(fields)),
    privateKey: keyOf(0xa000 + number),
  })
  const short = (value: Hex) => toHex(BigInt(value))
  return encode([...fields, yParity === 0 ? '0x' : '0x01', short(r), short(s)])
}

/** Signs a payment with the other root, which the main network rejects since EIP-2. */
async function signWithHighS(number: number): Promise<Hex> {
  const { r, s, v: _v, yParity, ...tx } = parseTransaction(await sign(accountOf(number), {}))
  const high = secp256k1.Point.Fn.ORDER - BigInt(s as Hex)
  return serializeTransaction(tx, { r: r as Hex, s: toHex(high), yParity: 1 - (yParity as number) })
}

const request = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 1, method, params })

/**
 * Gives a node the state that the requests read: a token, accounts with coins, and one transaction
 * of each kind.
 * @param side whose faucet has coins
 */
export async function prepare(side: EvmSide): Promise<PreparedSide> {
  const call = async <T>(method: string, ...params: unknown[]): Promise<T> => {
    const { body } = await side.send(request(method, params))
    if (body.error) throw new Error(`${method}: ${body.error.code} ${body.error.message}`)
    return body.result as T
  }
  const faucet = privateKeyToAccount(FAUCET_KEY)
  let nonce = Number(await call<Hex>('eth_getTransactionCount', faucet.address, 'latest'))
  const pay = async (fields: Fields) =>
    call<Hex>('eth_sendRawTransaction', await sign(faucet, { ...fields, nonce: nonce++ }))
  const { abi, bytecode } = artefact('TetherLike')
  const args = [10n ** 18n, 6, faucet.address]
  const deployment: Fields = {
    to: undefined,
    value: 0n,
    gas: 2_000_000n,
    data: encodeDeployData({ abi, bytecode, args }),
  }
  if (nonce === 0) await side.include(await pay(deployment))
  const created = await pay(deployment)
  for (let number = 1; number <= FUNDED; number++)
    await pay({ to: accountOf(number).address, value: BALANCE })
  await side.include(
    await pay({ to: TOKEN, value: 0n, gas: 100_000n, data: transferCall(holder.address, 1000n) }),
  )
  const send = async (raw: Promise<Hex>) => call<Hex>('eth_sendRawTransaction', await raw)
  const token = { to: TOKEN, value: 0n, gas: 100_000n }
  const paid = await send(sign(holder, {}))
  const transferred = await send(
    sign(holder, { ...token, nonce: 1, data: transferCall(NOBODY, 10n) }),
  )
  const failed = await send(
    sign(holder, { ...token, nonce: 2, data: transferCall(NOBODY, 10n ** 9n) }),
  )
  const legacy = await send(
    holder.signTransaction({
      type: 'legacy',
      chainId: CHAIN_ID,
      nonce: 3,
      to: NOBODY,
      value: 1n,
      gas: 21_000n,
      gasPrice: parseGwei('20'),
    }),
  )
  await side.include(legacy)
  const receipt = await call<{ blockHash: Hex; blockNumber: Hex }>(
    'eth_getTransactionReceipt',
    transferred,
  )
  const waiting = await send(sign(accountOf(2), { nonce: 1 }))
  const underpaid = await send(sign(accountOf(18), { max: 7n, tip: 7n }))
  // geth refuses to say that a transaction is unknown until its index is complete.
  await waitFor('the index of transactions', () =>
    call('eth_getTransactionReceipt', UNKNOWN).then(
      () => true,
      () => false,
    ),
  )
  const head = await call<{ hash: Hex; number: Hex }>('eth_getBlockByNumber', 'latest', false)
  return {
    ...side,
    call,
    paid,
    legacy,
    transferred,
    failed,
    created,
    waiting,
    underpaid,
    block: receipt.blockHash,
    height: receipt.blockNumber,
    head: head.hash,
    headHeight: BigInt(head.number),
  }
}

type Params = unknown[] | ((side: PreparedSide) => unknown[])
const read = (name: string, method: string, params: Params = []): EvmRequest => ({
  name: `${method} ${name}`.trim(),
  run: (side) => side.send(request(method, typeof params === 'function' ? params(side) : params)),
})

/** Broadcasts several transactions of one sender; the response to the last one is compared. */
const broadcast = (
  name: string,
  raws: (side: PreparedSide) => (Promise<Hex> | unknown)[],
): EvmRequest => ({
  name: `eth_sendRawTransaction ${name}`,
  run: async (side) => {
    const signed = await Promise.all(raws(side))
    for (const raw of signed.slice(0, -1) as Hex[]) await pool(side, raw)
    return side.send(request('eth_sendRawTransaction', signed.slice(-1)))
  },
})

/** Broadcasts a transaction and waits until the node counts it as executable. */
async function pool(side: PreparedSide, raw: Hex): Promise<void> {
  await side.call('eth_sendRawTransaction', raw)
  const { nonce = 0 } = parseTransaction(raw)
  const sender = await recoverTransactionAddress({
    serializedTransaction: raw as TransactionSerializedEIP1559,
  })
  await waitFor('the transaction is executable', async () => {
    const next = await side.call<Hex>('eth_getTransactionCount', sender, 'pending')
    return Number(next) > nonce
  })
}

const logs = (name: string, where: (side: PreparedSide) => object): EvmRequest =>
  read(name, 'eth_getLogs', (side) => [
    { ...where(side), address: [TOKEN], topics: [TRANSFER_TOPIC] },
  ])
const at = (height: bigint): Hex => toHex(height)

const BLOCKS: EvmRequest[] = [
  read('', 'eth_chainId'),
  read('', 'net_version'),
  read('', 'eth_blockNumber'),
  read('', 'eth_syncing'),
  ...['latest', 'earliest', 'safe', 'finalized'].map((tag) =>
    read(tag, 'eth_getBlockByNumber', [tag, false]),
  ),
  read('a number, with transactions', 'eth_getBlockByNumber', ({ height }) => [height, true]),
  read('a number, without transactions', 'eth_getBlockByNumber', ({ height }) => [height, false]),
  read('beyond the head', 'eth_getBlockByNumber', ({ headHeight }) => [at(headHeight + 9n), true]),
  read('a known hash', 'eth_getBlockByHash', ({ block }) => [block, false]),
  read('a known hash, with transactions', 'eth_getBlockByHash', ({ block }) => [block, true]),
  read('an unknown hash', 'eth_getBlockByHash', [UNKNOWN, false]),
  read('a known hash', 'eth_getBlockTransactionCountByHash', ({ block }) => [block]),
  read('an unknown hash', 'eth_getBlockTransactionCountByHash', [UNKNOWN]),
  read('a known hash', 'eth_getBlockReceipts', ({ block }) => [block]),
  read('a number', 'eth_getBlockReceipts', ({ height }) => [height]),
  read('an unknown hash', 'eth_getBlockReceipts', [UNKNOWN]),
  read('beyond the head', 'eth_getBlockReceipts', ({ headHeight }) => [at(headHeight + 9n)]),
]

const LOGS: EvmRequest[] = [
  logs('of a block', ({ block }) => ({ blockHash: block })),
  logs('of an unknown block', () => ({ blockHash: UNKNOWN })),
  logs('of a range', ({ height, headHeight }) => ({ fromBlock: height, toBlock: at(headHeight) })),
  logs('of a range without logs', () => ({ fromBlock: '0x0', toBlock: '0x0' })),
  logs('to latest', ({ height }) => ({ fromBlock: height, toBlock: 'latest' })),
  logs('of latest', () => ({})),
  logs('that ends beyond the head', ({ height, headHeight }) => ({
    fromBlock: height,
    toBlock: at(headHeight + 1n),
  })),
  logs('that begins beyond the head', ({ headHeight }) => ({
    fromBlock: at(headHeight + 1n),
    toBlock: at(headHeight + 2n),
  })),
  logs('from beyond the head to latest', ({ headHeight }) => ({
    fromBlock: at(headHeight + 5n),
    toBlock: 'latest',
  })),
  logs('of a reversed range', ({ headHeight }) => ({
    fromBlock: at(headHeight),
    toBlock: at(headHeight - 1n),
  })),
  logs('of a block and a range', ({ block, height }) => ({
    blockHash: block,
    fromBlock: height,
    toBlock: height,
  })),
]

const TRANSACTIONS: EvmRequest[] = [
  ...(
    ['paid', 'legacy', 'transferred', 'failed', 'created', 'waiting', 'underpaid'] as const
  ).flatMap((kind) => [
    read(kind, 'eth_getTransactionByHash', (side) => [side[kind]]),
    read(kind, 'eth_getTransactionReceipt', (side) => [side[kind]]),
  ]),
  read('unknown', 'eth_getTransactionByHash', [UNKNOWN]),
  read('unknown', 'eth_getTransactionReceipt', [UNKNOWN]),
  ...['latest', 'pending'].map((tag) =>
    read(tag, 'eth_getTransactionCount', [holder.address, tag]),
  ),
  read('of an unknown account', 'eth_getTransactionCount', [NEW_ACCOUNT, 'latest']),
  read('beyond the head', 'eth_getTransactionCount', ({ headHeight }) => [
    holder.address,
    at(headHeight + 9n),
  ]),
  read('latest', 'eth_getBalance', [holder.address, 'latest']),
  read('at a number', 'eth_getBalance', ({ headHeight }) => [holder.address, at(headHeight - 1n)]),
  read('beyond the head', 'eth_getBalance', ({ headHeight }) => [
    holder.address,
    at(headHeight + 9n),
  ]),
  read('of a token', 'eth_getCode', [TOKEN, 'latest']),
]

const value = (from: Hex, wei: bigint, to: Hex = NOBODY) => ({ from, to, value: toHex(wei) })
const token = (from: Hex, amount: bigint) => ({
  from,
  to: TOKEN,
  data: transferCall(NOBODY, amount),
})

const CALLS: EvmRequest[] = [
  read('a balance', 'eth_call', [{ to: TOKEN, data: balanceCall(NOBODY) }, 'latest']),
  read('an account without code', 'eth_call', [
    { to: NEW_ACCOUNT, data: balanceCall(NOBODY) },
    'latest',
  ]),
  read('a transfer', 'eth_call', [token(holder.address, 1n), 'latest']),
  read('a transfer that reverts', 'eth_call', [token(holder.address, 10n ** 12n), 'latest']),
  read('an unpayable value', 'eth_call', [value(POOR.address, 1n), 'latest']),
  read('beyond the head', 'eth_call', ({ headHeight }) => [
    { to: TOKEN, data: balanceCall(NOBODY) },
    at(headHeight + 9n),
  ]),
  read('at a number', 'eth_call', ({ height }) => [
    { to: TOKEN, data: balanceCall(NOBODY) },
    height,
  ]),
  read('a payment', 'eth_estimateGas', [value(holder.address, 1n)]),
  read('a payment to a new account', 'eth_estimateGas', [value(holder.address, 1n, NEW_ACCOUNT)]),
  read('a payment of the whole balance', 'eth_estimateGas', [value(accountOf(3).address, BALANCE)]),
  read('an unpayable payment', 'eth_estimateGas', [value(POOR.address, 1n)]),
  read('a payment above the balance', 'eth_estimateGas', [
    value(accountOf(3).address, 2n * BALANCE),
  ]),
  read('a payment without a value, by an account without coins', 'eth_estimateGas', [
    value(POOR.address, 0n),
  ]),
  read('an unpayable payment with a gas price', 'eth_estimateGas', [
    { ...value(POOR.address, 1n), gasPrice: toHex(parseGwei('20')) },
  ]),
  read('a payment with a value above the balance at latest', 'eth_estimateGas', [
    value(POOR.address, 1n),
    'latest',
  ]),
  read('a token transfer', 'eth_estimateGas', [token(holder.address, 1n)]),
  read('a token transfer that reverts', 'eth_estimateGas', [token(holder.address, 10n ** 12n)]),
  read('a token transfer by an account without coins', 'eth_estimateGas', [
    token(POOR.address, 0n),
  ]),
]

const FEES: EvmRequest[] = [
  read('', 'eth_gasPrice'),
  read('', 'eth_maxPriorityFeePerGas'),
  read('in hex', 'eth_feeHistory', ['0xa', 'latest', [25, 50, 75]]),
  read('in decimals', 'eth_feeHistory', [4, 'latest', [25, 50, 75]]),
  read('without percentiles', 'eth_feeHistory', ['0x4', 'latest', []]),
  read('with null percentiles', 'eth_feeHistory', ['0x4', 'latest', null]),
  read('of no block', 'eth_feeHistory', ['0x0', 'latest', [50]]),
  read('to a number', 'eth_feeHistory', ({ height }) => ['0x1', height, [50]]),
  read('with falling percentiles', 'eth_feeHistory', ['0x4', 'latest', [75, 25]]),
  read('with a percentile above 100', 'eth_feeHistory', ['0x4', 'latest', [101]]),
  read('beyond the head', 'eth_feeHistory', ({ headHeight }) => ['0x4', at(headHeight + 9n), [50]]),
]

const PROTOCOL: EvmRequest[] = [
  read('', 'eth_doesNotExist'),
  read('', 'evm_mine'),
  read('', 'anvil_setBalance', [NOBODY, '0x1']),
  read('without parameters', 'eth_getBlockByNumber'),
  read('with one parameter', 'eth_getBlockByNumber', ['latest']),
  read('with a number that is not hex', 'eth_getBlockByNumber', ['12', false]),
  read('with an unknown tag', 'eth_getBlockByNumber', ['newest', false]),
  read('with a text for a boolean', 'eth_getBlockByNumber', ['latest', 'no']),
  read('with a short hash', 'eth_getTransactionReceipt', ['0x1234']),
  read('with a short hash', 'eth_getTransactionByHash', ['0x1234']),
  read('with a short address', 'eth_getBalance', ['0x1234', 'latest']),
  read('without an address', 'eth_getBalance', []),
  read('with a text', 'eth_getLogs', ['logs']),
  read('with a text', 'eth_estimateGas', ['payment']),
  read('with too many parameters', 'eth_chainId', ['0x1']),
  {
    name: 'parameters by name',
    run: (side) => side.send(request('eth_getBlockByNumber', { tag: 'latest', full: false })),
  },
  {
    name: 'no parameters',
    run: (side) => side.send({ jsonrpc: '2.0', id: 1, method: 'eth_chainId' }),
  },
  { name: 'no method', run: (side) => side.send({ jsonrpc: '2.0', id: 1 }) },
  { name: 'not JSON', run: (side) => side.send('{') },
  { name: 'empty batch', run: (side) => side.send([]) },
  {
    name: 'batch',
    run: (side) => side.send([request('eth_chainId', []), request('eth_doesNotExist', [])]),
  },
]

const LEGACY = { type: 'legacy', nonce: 0, to: NOBODY, value: 1n, gas: 21_000n } as const
const sender = (number: number, fields: Fields = {}) => sign(accountOf(number), fields)
const BROADCASTS: EvmRequest[] = [
  broadcast('a payment', () => [sender(4)]),
  broadcast('a payment that is known', () => [sender(5), sender(5)]),
  broadcast('a mined payment', () => [sign(holder, {})]),
  broadcast('nonce too low', () => [sign(holder, { value: 2n })]),
  broadcast('nonce too high', () => [sender(6, { nonce: 3 })]),
  broadcast('replacement with the same fees', () => [sender(7), sender(7, { value: 2n })]),
  broadcast('replacement with a higher tip only', () => [
    sender(8),
    sender(8, { tip: parseGwei('2') }),
  ]),
  broadcast('replacement that pays 9 % more', () => [
    sender(9),
    sender(9, { max: parseGwei('21.8'), tip: parseGwei('1.09') }),
  ]),
  broadcast('replacement that pays 10 % more', () => [
    sender(10),
    sender(10, { max: parseGwei('22'), tip: parseGwei('1.1') }),
  ]),
  broadcast('tip and max fee 0', () => [sender(11, { max: 0n, tip: 0n })]),
  broadcast('tip 0', () => [sender(11, { tip: 0n })]),
  broadcast('legacy gas price 0', () => [
    accountOf(11).signTransaction({ ...LEGACY, chainId: CHAIN_ID, gasPrice: 0n }),
  ]),
  broadcast('max fee below the base fee', () => [sender(12, { max: 7n, tip: 7n })]),
  broadcast('tip above the max fee', () => [signTipAboveMax(11)]),
  broadcast('intrinsic gas', () => [sender(11, { gas: 20_000n })]),
  broadcast('gas of the call data', () => [
    sender(11, { gas: 22_000n, data: `0x${'ff'.repeat(100)}` }),
  ]),
  broadcast('floor of the gas of the call data', () => [
    sender(11, { gas: 23_000n, data: `0x${'ff'.repeat(100)}` }),
  ]),
  broadcast('high s', () => [signWithHighS(11)]),
  broadcast('gas limit at the cap', () => [sender(13, { gas: GAS_CAP })]),
  broadcast('gas limit above the cap', () => [sender(11, { gas: GAS_CAP + 1n })]),
  broadcast('gas limit above that of the block', () => [sender(11, { gas: 40_000_000n })]),
  broadcast('fee above the cap', () => [sender(11, { gas: 1_000_000n, max: parseGwei('2000') })]),
  broadcast('fee at the cap', () => [sender(14, { gas: 1_000_000n, max: parseGwei('1000') })]),
  broadcast('fee above the cap and the balance', () => [
    sign(POOR, { gas: 1_000_000n, max: parseGwei('2000') }),
  ]),
  broadcast('value above the balance', () => [sender(15, { value: 2n * BALANCE })]),
  broadcast('no coins', () => [sign(POOR, {})]),
  broadcast('value above what waiting payments leave', () => [
    sender(16, { value: parseEther('4') }),
    sender(16, { nonce: 1, value: parseEther('4') }),
  ]),
  broadcast('replacement above the balance', () => [
    sender(17, { value: parseEther('4') }),
    sender(17, { value: parseEther('6'), max: parseGwei('30'), tip: parseGwei('2') }),
  ]),
  broadcast('another chain', () => [sender(11, { chainId: 1 })]),
  broadcast('legacy without a chain', () => [
    accountOf(11).signTransaction({ ...LEGACY, gasPrice: parseGwei('20') }),
  ]),
  broadcast('too much data', () => [
    sender(11, { gas: 6_000_000n, data: `0x${'00'.repeat(140_000)}` }),
  ]),
  broadcast('too much init code', () => [
    sender(11, { to: undefined, gas: 6_000_000n, data: `0x${'00'.repeat(49_153)}` }),
  ]),
  broadcast('an empty list', () => ['0xc0']),
  broadcast('two bytes', () => ['0x1234']),
  broadcast('no bytes', () => ['0x']),
  broadcast('not hex', () => ['payment']),
  broadcast('a number', () => [7]),
  read('without parameters', 'eth_sendRawTransaction', []),
]

/** Requests whose answers depend on whether the node knows a final block. */
export const FINALITY_REQUESTS: readonly EvmRequest[] = ['finalized', 'safe', 'latest'].flatMap(
  (tag) => [
    read(tag, 'eth_getBlockByNumber', [tag, false]),
    read(tag, 'eth_getBalance', [holder.address, tag]),
    read(tag, 'eth_getTransactionCount', [holder.address, tag]),
    read(tag, 'eth_call', [{ to: TOKEN, data: balanceCall(NOBODY) }, tag]),
  ],
)

/** Every request that the platform sends to an EVM network, and every refusal that it reads. */
export const EVM_REQUESTS: readonly EvmRequest[] = [
  ...BLOCKS,
  ...LOGS,
  ...TRANSACTIONS,
  ...CALLS,
  ...FEES,
  ...PROTOCOL,
  ...BROADCASTS,
]
