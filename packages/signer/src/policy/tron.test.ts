import { decode, tron, type Asset, type Network, type UnsignedTransaction } from '@custody/chains'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha256 } from '@noble/hashes/sha2.js'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { assertExpiry } from './expiry.ts'
import { decodeDecoded, encodeDecoded } from './exclusivity.ts'
import { IMPORTED } from '../store/entries/imported.ts'
import { Ends } from '../store/ends.ts'
import { State } from '../store/state.ts'
import {
  SignerCluster,
  now,
  pay,
  registry,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * Tron: a hostile platform requests another payment, another expiry, or more of the gas tank; both
 * nodes refuse it.
 */
const TRX = registry.network('TRX') as Network
const NATIVE = registry.asset('TRX') as Asset
const USDT = registry.asset('USDT_TRX') as Asset
const USDC = registry.asset('USDC_TRX') as Asset
const SINK = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const OTHER = 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH'
const TANK = [0, TRX.chain_index, 0]
let cluster: SignerCluster
let workspace: Workspace
let next = 1
let turn = 0

before(async () => {
  cluster = await SignerCluster.start({
    edit: (config) => {
      config.budget_fee_caps = 1
    },
    engine: 'double',
  })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

function refused(answer: Answer, code: string, rule: number): void {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
  assert.equal(answer.body.rule, rule)
}
function signed(answer: Answer): Answer {
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer
}
async function fresh(of = workspace): Promise<{ caller: Caller; path: number[]; address: string }> {
  const path = [next++, TRX.chain_index, 0]
  return { caller: await of.caller(path[0]), path, address: of.address(TRX, path) }
}
const wants = (caller: Caller, more: Record<string, unknown> = {}) =>
  transfer(caller, { asset: 'TRX', amount: '2.5', destination_address: SINK, ...more })
const reference = (seconds = 600): tron.TronReference => ({
  ...tron.refBlock(70_000_000, '00000000042c1d80a1b2c3d4e5f60718293a4b5c6d7e8f900112233445566778'),
  expiration: (now() + seconds) * 1000,
  timestamp: Date.now() + turn++,
})
type Options = Partial<Parameters<typeof tron.buildTransfer>[1]>
const built = (path: number[], o: Options = {}, of = workspace): UnsignedTransaction =>
  tron.buildTransfer(TRX, {
    asset: NATIVE,
    to: SINK,
    amount: 2_500_000n,
    reference: reference(),
    path,
    publicKey: of.publicKeyAt(path),
    ...o,
  })
const tokens = (path: number[], o: Options = {}): UnsignedTransaction =>
  built(path, { asset: USDT, feeLimit: 15_636_000n, ...o })
/** Cost of a USDT transfer to an address without USDT. */
const COSTS = { gas: '130300', max_fee_per_gas: '100', l1_fee: '345000' }
const MOST = 15_636_000n + 345_000n

test("every pair signs the caller's request, for TRX and for tokens", async () => {
  for (const [at, asset] of [NATIVE, USDT, USDC].entries()) {
    const { caller, path } = await fresh()
    const unsigned = asset === NATIVE ? built(path) : tokens(path, { asset })
    const { body } = signed(
      await workspace.sign(
        pay(await wants(caller, { asset: asset.asset_name })),
        unsigned,
        (
          [
            [1, 2],
            [2, 3],
            [3, 1],
          ] as const
        )[at],
      ),
    )
    const digest = sha256(Buffer.from(unsigned.bytes, 'hex'))
    assert.equal(body.signed.hash, Buffer.from(digest).toString('hex'))
    assert.ok(
      secp256k1.verify(
        Buffer.from(body.signatures[0].signature, 'hex'),
        digest,
        workspace.publicKeyAt(path),
        { prehash: false },
      ),
    )
  }
})

test('destination, amount, asset and contract must match', async () => {
  const { caller, path } = await fresh()
  refused(
    await workspace.sign(pay(await wants(caller)), built(path, { to: OTHER })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(pay(await wants(caller)), built(path, { amount: 2_500_001n })),
    'AMOUNT_MISMATCH',
    7,
  )
  const request = pay(await wants(caller, { asset: 'USDT_TRX' }))
  refused(await workspace.sign(request, tokens(path, { to: OTHER })), 'DESTINATION_MISMATCH', 7)
  refused(await workspace.sign(request, tokens(path, { amount: 2_499_999n })), 'AMOUNT_MISMATCH', 7)
  refused(await workspace.sign(request, tokens(path, { asset: USDC })), 'ASSET_MISMATCH', 7)
  refused(await workspace.sign(request, built(path)), 'ASSET_MISMATCH', 7)
  refused(
    await workspace.sign(request, tokens(path, { asset: { ...USDT, contract_address: OTHER } })),
    'CONTRACT_MISMATCH',
    5,
  )
})

test('refuses staking and energy delegation instead of a payment, and trailing bytes', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller))
  const common = { reference: reference(), path, publicKey: workspace.publicKeyAt(path) }
  const staking = [
    tron.buildFreeze(TRX, { ...common, amount: 2_500_000n, resource: 'ENERGY' }),
    tron.buildUnfreeze(TRX, { ...common, amount: 2_500_000n, resource: 'ENERGY' }),
    tron.buildWithdraw(TRX, common),
    tron.buildDelegate(TRX, { ...common, amount: 2_500_000n, resource: 'ENERGY', receiver: SINK }),
    tron.buildUndelegate(TRX, {
      ...common,
      amount: 2_500_000n,
      resource: 'ENERGY',
      receiver: SINK,
    }),
  ]
  for (const unsigned of staking) refused(await workspace.sign(request, unsigned), 'SHAPE', 7)
  refused(
    await workspace.sign(request, { ...built(path), bytes: `${built(path).bytes}5a00` }),
    'SHAPE',
    7,
  )
  refused(
    await workspace.sign(request, { ...built(path), bytes: built(path).bytes.slice(2) }),
    'SHAPE',
    7,
  )
})

test('refuses another account, another sub-account, and another address of the wallet', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller))
  const foreign = [path[0]! + 500, TRX.chain_index, 0]
  refused(await workspace.sign(request, built(foreign)), 'FOREIGN_PATH', 8)
  refused(
    await workspace.sign(request, { ...built(foreign), inputs: [{ path }] }),
    'FOREIGN_PATH',
    8,
  )
  refused(await workspace.sign(request, built([path[0]!, TRX.chain_index, 1])), 'FOREIGN_PATH', 8)
  refused(await workspace.sign(request, built(TANK)), 'FOREIGN_PATH', 8)
})

test('refuses fees above the cap or the caller’s own rate', async () => {
  const { caller, path } = await fresh()
  refused(
    await workspace.sign(
      pay(await wants(caller, { asset: 'USDT_TRX' })),
      tokens(path, { feeLimit: 300_000_000n }),
    ),
    'FEE_CAP',
    9,
  )
  refused(
    await workspace.sign(pay(await wants(caller, { fee_rate: 999 })), built(path)),
    'FEE_RATE',
    9,
  )
  // At 100 sun no transfer needs a limit above 500,000 energy, including the margin.
  refused(
    await workspace.sign(
      pay(await wants(caller, { asset: 'USDT_TRX', fee_rate: 100 })),
      tokens(path, { feeLimit: 60_000_001n }),
    ),
    'FEE_RATE',
    9,
  )
  signed(
    await workspace.sign(
      pay(await wants(caller, { asset: 'USDT_TRX', fee_rate: 100 })),
      tokens(path),
    ),
  )
  const other = await fresh()
  signed(
    await workspace.sign(pay(await wants(other.caller, { fee_rate: 1000 })), built(other.path)),
  )
})

test('refuses a second transaction for a transfer, with another expiry or time', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller))
  const first = built(path)
  signed(await workspace.sign(request, first))
  refused(await workspace.sign(request, built(path)), 'NOT_EXCLUSIVE', 6)
  refused(
    await workspace.sign(request, built(path, { reference: reference(900) }), [2, 3]),
    'NOT_EXCLUSIVE',
    6,
  )
  await cluster.restartHere(2)
  refused(await workspace.sign(request, built(path), [2, 3]), 'NOT_EXCLUSIVE', 6)
  signed(await workspace.sign(request, first))
})

test('a void names the signed transaction, and nothing is signed afterwards', async () => {
  const { caller, path } = await fresh()
  const request = await wants(caller)
  const first = built(path)
  const { body } = signed(await workspace.sign(pay(request), first))
  const response = await cluster.post(1, '/void', { request })
  assert.deepEqual(
    [response.body.error, response.body.signed_hashes],
    ['ALREADY_SIGNED', [body.signed.hash]],
  )
  for (const node of [1, 2, 3])
    assert.equal((await cluster.post(node, '/void', { request, force: true })).body.voided, true)
  refused(await workspace.sign(pay(request), first), 'VOIDED', 14)
  refused(await workspace.sign(pay(request), built(path)), 'VOIDED', 14)
})

test('limits an expiry by the clock, the record and the maximum of the chain', async () => {
  const { caller, path } = await fresh()
  const [most, mostLocally] = [86_400, 400 * 86_400]
  const far = mostLocally + 86_400
  refused(
    await workspace.sign(pay(await wants(caller)), built(path, { reference: reference(far) })),
    'EXPIRY',
    10,
  )
  // The operator has moved the local chain's time: the record accepts it.
  signed(
    await workspace.sign(
      pay(await wants(caller)),
      built(path, { reference: reference(mostLocally - 60) }),
    ),
  )
  const later = await fresh()
  signed(
    await workspace.sign(
      pay(await wants(later.caller)),
      built(later.path, { reference: reference(far) }),
    ),
  )
  // On the main network no operator can move the chain's time.
  const state = new State()
  const subject = (end: number) =>
    ({
      decoded: { valid_until: end },
      network: { ...TRX, mode: 'mainnet' },
    }) as unknown as Parameters<typeof assertExpiry>[1]
  const ends = new Ends()
  ends.add(5_000_000, 0, true)
  state.ends.set('TRX', ends)
  assertExpiry(state, subject(1000 + most), 1000)
  assert.throws(() => assertExpiry(state, subject(1001 + most), 1000), { code: 'EXPIRY' })
})

test('gas funding may go only to the source of its transfer, up to energy and bandwidth cost', async () => {
  const { caller, path, address } = await fresh()
  const request = await wants(caller, { asset: 'USDT_TRX' })
  const purpose = { kind: 'fuel', for: pay(request), ...COSTS }
  refused(
    await workspace.sign(purpose, built(TANK, { to: SINK, amount: 1n })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(
      purpose,
      built(TANK, { to: workspace.address(TRX, [path[0]!, TRX.chain_index, 1]), amount: 1n }),
    ),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await workspace.sign(purpose, built(TANK, { to: address, amount: MOST + 1n })),
    'FUEL_TOO_LARGE',
    11,
  )
  refused(await workspace.sign(purpose, built(path, { amount: 1n })), 'FOREIGN_PATH', 8)
  refused(await workspace.sign(purpose, tokens(TANK, { to: address })), 'ASSET_MISMATCH', 7)
  refused(
    await workspace.sign({ ...purpose, gas: '3000001' }, built(TANK, { to: address, amount: 1n })),
    'FUEL_TOO_LARGE',
    11,
  )
  refused(
    await workspace.sign(
      { ...purpose, l1_fee: '300000001' },
      built(TANK, { to: address, amount: 1n }),
    ),
    'FUEL_TOO_LARGE',
    11,
  )
  const limited = await wants(caller, { asset: 'USDT_TRX', fee_rate: 99 })
  refused(
    await workspace.sign(
      { ...purpose, for: pay(limited) },
      built(TANK, { to: address, amount: 1n }),
    ),
    'FEE_RATE',
    9,
  )
  signed(await workspace.sign(purpose, built(TANK, { to: address, amount: MOST })))
  refused(
    await workspace.sign(purpose, built(TANK, { to: address, amount: 1n })),
    'NOT_EXCLUSIVE',
    6,
  )
  // After its transfer is void, no more fuel is signed.
  const voided = await fresh()
  const voidedRequest = await wants(voided.caller)
  for (const node of [1, 2, 3]) await cluster.post(node, '/void', { request: voidedRequest })
  refused(
    await workspace.sign(
      { kind: 'fuel', for: pay(voidedRequest), ...COSTS },
      built(TANK, { to: voided.address, amount: 1n }),
    ),
    'VOIDED',
    14,
  )
})

test('a sweep goes to the omnibus address, its gas funding to the swept address', async () => {
  const own = await cluster.workspace()
  const { path, address } = await fresh(own)
  const deposit = [path[0]!, TRX.chain_index, 1]
  const sweep = (asset: string, address_index = 1) => ({
    kind: 'sweep',
    sub_account: path[0],
    asset,
    address_index,
  })
  refused(
    await own.sign(sweep('TRX'), built(deposit, { to: SINK }, own)),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await own.sign(sweep('USDT_TRX'), built(deposit, { to: address }, own)),
    'ASSET_MISMATCH',
    7,
  )
  refused(await own.sign(sweep('TRX', 2), built(deposit, { to: address }, own)), 'FOREIGN_PATH', 8)
  refused(await own.sign(sweep('TRX', 0), built(path, { to: SINK }, own)), 'SWEEP_MISMATCH', 12)
  signed(await own.sign(sweep('TRX'), built(deposit, { to: address }, own)))
  signed(
    await own.sign(
      sweep('USDT_TRX'),
      built(deposit, { asset: USDT, feeLimit: 15_636_000n, to: address }, own),
    ),
  )
  const fuel = { kind: 'fuel', for: sweep('USDT_TRX'), ...COSTS }
  refused(
    await own.sign(fuel, built(TANK, { to: address, amount: 1n }, own)),
    'DESTINATION_MISMATCH',
    7,
  )
  let last: Answer | undefined
  for (let index = 1; index <= 20 && last?.body?.error === undefined; index++) {
    last = await own.sign(
      { ...fuel, for: sweep('USDT_TRX', index) },
      built(TANK, { to: own.address(TRX, [path[0]!, TRX.chain_index, index]), amount: MOST }, own),
    )
  }
  refused(last as Answer, 'BUDGET', 11)
})

test('empties a gas tank only as the operator ordered at each node', async () => {
  const order = randomUUID()
  refused(await workspace.sign({ kind: 'drain', order }, built(TANK)), 'ORDER_UNKNOWN', 15)
  await cluster.everywhere('drain', {
    workspace: workspace.name,
    network: 'TRX',
    to_address: SINK,
    order,
  })
  refused(
    await workspace.sign({ kind: 'drain', order }, built(TANK, { to: OTHER })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(await workspace.sign({ kind: 'drain', order }, tokens(TANK)), 'ASSET_MISMATCH', 7)
  signed(await workspace.sign({ kind: 'drain', order }, built(TANK)))
  refused(
    await workspace.sign({ kind: 'drain', order }, built(TANK, { amount: 1n })),
    'NOT_EXCLUSIVE',
    6,
  )
})

test("the record stores a staking transaction's effect and expiry, also at a restored node", () => {
  const path = [1, TRX.chain_index, 0]
  const common = { reference: reference(), path, publicKey: workspace.publicKeyAt(path) }
  const unsigned = tron.buildDelegate(TRX, {
    ...common,
    amount: 2n ** 60n,
    resource: 'ENERGY',
    receiver: SINK,
  })
  const decoded = decode(registry, unsigned, workspace.publicKeyAt)
  const written = JSON.parse(JSON.stringify(encodeDecoded(decoded)))
  assert.deepEqual(decodeDecoded(written), decoded)
  const body = {
    step: 's',
    unsigned_hash: 'h',
    consumes: [],
    intent: null,
    content: null,
    transaction_id: null,
    account: null,
    nonce: null,
    charge: null,
    sessions: [],
    decoded: written,
  }
  assert.deepEqual(decodeDecoded(IMPORTED.step.parse(body).decoded), decoded)
})
