import {
  addressAt,
  publicKeysBelow,
  solana,
  type Asset,
  type Network,
  type UnsignedTransaction,
} from '@custody/chains'
import { ed25519 } from '@noble/curves/ed25519.js'
import { base58 } from '@scure/base'
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  SignerCluster,
  pay,
  registry,
  transfer,
  type Answer,
  type Caller,
} from '../../testing/signer-cluster.ts'

/**
 * Solana: a hostile platform requests another payment than the caller signed; both nodes refuse it.
 */
const SOL = registry.network('SOL') as Network
const NATIVE = registry.asset('SOL') as Asset
const USDC = registry.asset('USDC_SOL') as Asset
const USDT = registry.asset('USDT_SOL') as Asset
const SINK = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'
const OTHER = 'vines1vzrYbzLMRdu58ou5XTby4qAqVRLmqo36NKPTg'
const HASH = 'CxKXFd1BtnMt1r8ugTnxoAcfs2vYNj3AyxuCU7p4mN5V'
const WORKSPACE = 'solana'
let cluster: SignerCluster
let key: { publicKey: Uint8Array; chainCode: Uint8Array }
let at: (path: readonly number[]) => Uint8Array
let next = 1

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  const { status, body } = await cluster.key(1, WORKSPACE, 'ed25519')
  assert.equal(status, 200, JSON.stringify(body))
  key = {
    publicKey: new Uint8Array(Buffer.from(body.public_key, 'hex')),
    chainCode: new Uint8Array(Buffer.from(body.chain_code, 'hex')),
  }
  at = publicKeysBelow({ curve: 'ed25519', ...key })
})
after(async () => {
  await cluster.stop()
})

function refused(answer: Answer, code: string, rule: number): void {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
  assert.equal(answer.body.rule, rule)
}
const sign = (
  purpose: unknown,
  unsigned: UnsignedTransaction,
  pair: readonly [number, number] = [1, 2],
) => cluster.post(pair[0], '/sign', { workspace: WORKSPACE, purpose, unsigned, partner: pair[1] })
async function fresh(): Promise<{ caller: Caller; path: number[] }> {
  const api_key = crypto.randomUUID()
  const sub_account = next++
  for (const node of [1, 2, 3])
    await cluster.enrol(node, { api_key, workspace: WORKSPACE, sub_account })
  return { caller: { api_key, sub_account }, path: [sub_account, SOL.chain_index, 0] }
}
const wants = (caller: Caller, more: Record<string, unknown> = {}) =>
  transfer(caller, { asset: 'SOL', amount: '2.5', destination_address: SINK, ...more })
const built = (
  path: number[],
  o: Partial<Parameters<typeof solana.buildTransfer>[1]> = {},
): UnsignedTransaction =>
  solana.buildTransfer(SOL, {
    asset: NATIVE,
    to: SINK,
    amount: 2_500_000_000n,
    blockhash: HASH,
    unitPrice: 1000n,
    path,
    publicKey: at(path),
    ...o,
  })
const tokens = (path: number[], o: Partial<Parameters<typeof solana.buildTransfer>[1]> = {}) =>
  built(path, { asset: USDC, amount: 2_500_000n, ...o })
/** Returns the message with some bytes replaced. */
function patched(
  unsigned: UnsignedTransaction,
  from: Uint8Array,
  to: Uint8Array,
): UnsignedTransaction {
  const [a, b] = [Buffer.from(from).toString('hex'), Buffer.from(to).toString('hex')]
  assert.ok(unsigned.bytes.includes(a))
  return { ...unsigned, bytes: unsigned.bytes.replaceAll(a, b) }
}

test("every pair signs the caller's request, for SOL and for tokens", async () => {
  for (const [turn, asset] of [NATIVE, USDC, USDT].entries()) {
    const { caller, path } = await fresh()
    const unsigned = asset === NATIVE ? built(path) : tokens(path, { asset })
    const answer = await sign(
      pay(await wants(caller, { asset: asset.asset_name })),
      unsigned,
      (
        [
          [1, 2],
          [2, 3],
          [3, 1],
        ] as const
      )[turn],
    )
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    const raw = Buffer.from(answer.body.signed.raw, 'hex')
    assert.equal(base58.encode(raw.subarray(1, 65)), answer.body.signed.hash)
    assert.ok(
      ed25519.verify(
        raw.subarray(1, 65),
        raw.subarray(65),
        base58.decode(addressAt(SOL, key, path)),
      ),
    )
  }
})

test('destination and amount must match exactly', async () => {
  const { caller, path } = await fresh()
  refused(
    await sign(pay(await wants(caller)), built(path, { to: OTHER })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await sign(pay(await wants(caller)), built(path, { amount: 2_500_000_001n })),
    'AMOUNT_MISMATCH',
    7,
  )
  refused(
    await sign(pay(await wants(caller, { asset: 'USDC_SOL' })), tokens(path, { to: OTHER })),
    'DESTINATION_MISMATCH',
    7,
  )
  refused(
    await sign(
      pay(await wants(caller, { asset: 'USDC_SOL' })),
      tokens(path, { amount: 2_500_001n }),
    ),
    'AMOUNT_MISMATCH',
    7,
  )
})

test('refuses another mint, other decimals, another asset, and a foreign token account', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller, { asset: 'USDC_SOL' }))
  refused(await sign(request, tokens(path, { asset: USDT })), 'ASSET_MISMATCH', 7)
  refused(await sign(request, built(path, { amount: 2_500_000n })), 'ASSET_MISMATCH', 7)
  refused(
    await sign(request, tokens(path, { asset: { ...USDC, contract_address: OTHER } })),
    'CONTRACT_MISMATCH',
    5,
  )
  refused(
    await sign(request, tokens(path, { asset: { ...USDC, decimals: 9 } })),
    'CONTRACT_MISMATCH',
    5,
  )
  const mint = USDC.contract_address as string
  refused(
    await sign(
      request,
      patched(
        tokens(path),
        base58.decode(solana.tokenAccountOf(SINK, mint)),
        base58.decode(solana.tokenAccountOf(OTHER, mint)),
      ),
    ),
    'SHAPE',
    7,
  )
  refused(
    await sign(request, patched(tokens(path), base58.decode(SINK), base58.decode(OTHER))),
    'SHAPE',
    7,
  )
})

test('refuses legacy messages, Token-2022, a durable nonce, and trailing bytes', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller))
  refused(await sign(request, { ...built(path), bytes: built(path).bytes.slice(2) }), 'SHAPE', 7)
  refused(await sign(request, { ...built(path), bytes: `${built(path).bytes}00` }), 'SHAPE', 7)
  refused(
    await sign(
      pay(await wants(caller, { asset: 'USDC_SOL' })),
      patched(
        tokens(path),
        base58.decode('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'),
        base58.decode('TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'),
      ),
    ),
    'SHAPE',
    7,
  )
  // Instruction 2 of the System program becomes 4: with it a blockhash never expires.
  refused(
    await sign(
      request,
      patched(built(path), Buffer.from('0c02000000', 'hex'), Buffer.from('0c04000000', 'hex')),
    ),
    'SHAPE',
    7,
  )
})

test('refuses another account, another sub-account, and another address of the wallet', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller))
  const other = [path[0]! + 500, SOL.chain_index, 0]
  refused(await sign(request, built(other)), 'FOREIGN_PATH', 8)
  refused(await sign(request, { ...built(other), inputs: [{ path }] }), 'FOREIGN_PATH', 8)
  refused(await sign(request, built([path[0]!, SOL.chain_index, 1])), 'FOREIGN_PATH', 8)
})

test('refuses fees above the cap or the caller’s own rate', async () => {
  const { caller, path } = await fresh()
  refused(
    await sign(pay(await wants(caller)), built(path, { unitPrice: 50_000_000_000n })),
    'FEE_CAP',
    9,
  )
  refused(
    await sign(
      pay(await wants(caller, { fee_rate: 6000 })),
      built(path, { unitPrice: 2_000_000n }),
    ),
    'FEE_RATE',
    9,
  )
  assert.equal(
    (
      await sign(
        pay(await wants(caller, { fee_rate: 6000 })),
        built(path, { unitPrice: 1_000_000n }),
      )
    ).status,
    200,
  )
})

test('refuses a second transaction for a transfer, even with a fresh blockhash', async () => {
  const { caller, path } = await fresh()
  const request = pay(await wants(caller))
  const first = await sign(request, built(path))
  assert.equal(first.status, 200)
  refused(await sign(request, built(path, { blockhash: OTHER })), 'NOT_EXCLUSIVE', 6)
  refused(await sign(request, built(path, { unitPrice: 1001n }), [2, 3]), 'NOT_EXCLUSIVE', 6)
  assert.equal((await sign(request, built(path), [1, 2])).status, 200)
})

test('a sweep may go only to the sub-account’s omnibus address', async () => {
  const { path } = await fresh()
  const deposit = [path[0]!, SOL.chain_index, 1]
  const sweep = (asset: string) => ({
    kind: 'sweep',
    sub_account: path[0],
    asset,
    address_index: 1,
  })
  const omnibus = addressAt(SOL, key, path)
  refused(await sign(sweep('SOL'), built(deposit, { to: OTHER })), 'DESTINATION_MISMATCH', 7)
  refused(await sign(sweep('USDC_SOL'), built(deposit, { to: omnibus })), 'ASSET_MISMATCH', 7)
  assert.equal((await sign(sweep('SOL'), built(deposit, { to: omnibus }))).status, 200)
  const swept = (from: number[], payer: number[]) =>
    solana.buildTokenSweep(SOL, {
      asset: USDC,
      amount: 5_000_000n,
      blockhash: HASH,
      units: 90_000,
      unitPrice: 0n,
      from: { publicKey: at(from), path: from },
      omnibus: { publicKey: at(payer), path: payer },
    })
  const foreign = [path[0]! + 700, SOL.chain_index, 0]
  refused(await sign(sweep('USDC_SOL'), swept(deposit, foreign)), 'FOREIGN_PATH', 8)
  refused(await sign(sweep('USDC_SOL'), swept(foreign, path)), 'FOREIGN_PATH', 8)
  refused(
    await sign(sweep('USDC_SOL'), swept([path[0]!, SOL.chain_index, 2], path)),
    'FOREIGN_PATH',
    8,
  )
  refused(await sign(sweep('USDT_SOL'), swept(deposit, path)), 'ASSET_MISMATCH', 7)
  assert.equal((await sign(sweep('USDC_SOL'), swept(deposit, path))).status, 200)
})
