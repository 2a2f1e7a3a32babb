// Balances of many Solana addresses: what endpoints answer, and the local chain.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ed25519 } from '@noble/curves/ed25519.js'
import { base58 } from '@scure/base'
import { BALANCES_MAX, RpcRefused, RpcUnavailable, SolanaClient, type Asset } from '../index.ts'
import { client, MINT, OWNER, PAYER, USDC } from '../../testing/solana-support.ts'
import { local } from '../../testing/support.ts'
import { TOKEN_PROGRAM, tokenAccountOf } from './address.ts'

const SOL = { asset_name: 'SOL', type: 'native', decimals: 9 } as Asset

/** The first 109 bytes of a token account. */
function tokenAccount(mint: string, owner: string, amount: bigint, state = 1): string {
  const bytes = Buffer.alloc(109)
  bytes.set(base58.decode(mint), 0)
  bytes.set(base58.decode(owner), 32)
  bytes.writeBigUInt64LE(amount, 64)
  bytes[108] = state
  return bytes.toString('base64')
}
const node = (value: unknown) =>
  client({ getMultipleAccounts: () => ({ context: { slot: 1 }, value }) })
const held = (data: string, owner = TOKEN_PROGRAM) => ({
  lamports: 2_039_280,
  owner,
  data: [data, 'base64'],
})

test('lamports are exact, and an account that does not exist has none', async () => {
  const raw = `raw:{"context":{"slot":1},"value":[{"lamports":9007199254740993},null]}`
  const many = client({ getMultipleAccounts: () => raw })
  assert.deepEqual(await many.balances([OWNER, PAYER], SOL), [9007199254740993n, 0n])
})

test('a token’s balance is that of the associated account which the address owns', async () => {
  for (const [name, account, expected] of [
    ['its own', held(tokenAccount(MINT, OWNER, 2n ** 63n)), 2n ** 63n],
    ['none', null, 0n],
    ['given to another owner', held(tokenAccount(MINT, PAYER, 5n)), 0n],
    ['of another mint', held(tokenAccount(PAYER, OWNER, 5n)), 0n],
    ['not initialized', held(tokenAccount(MINT, OWNER, 5n, 0)), 0n],
    ['lamports without tokens', held('', '1'.repeat(32)), 0n],
  ] as const)
    assert.deepEqual(await node([account]).balances([OWNER], USDC), [expected], name)
})

test('requests 100 accounts at a time, by the associated token account', async () => {
  const owners = Array.from({ length: 250 }, (_, at) =>
    base58.encode(Uint8Array.from({ length: 32 }, (__, byte) => (byte < 2 ? at : 1))),
  )
  const requests: string[][] = []
  const many = client({
    getMultipleAccounts: (params) => {
      const [accounts] = params as unknown as [string[]]
      requests.push(accounts)
      return { value: accounts.map(() => null) }
    },
  })
  assert.deepEqual(await many.balances(owners, USDC), Array(250).fill(0n))
  assert.deepEqual(
    requests.map(({ length }) => length),
    [100, 100, 50],
  )
  assert.deepEqual(
    requests.flat(),
    owners.map((owner) => tokenAccountOf(owner, MINT)),
  )
})

test('an answer with missing or malformed accounts is no balance', async () => {
  for (const [asset, value] of [
    [SOL, []],
    [SOL, null],
    [SOL, [{ lamports: 1 }, { lamports: 2 }]],
    [SOL, [{}]],
    [SOL, [{ lamports: -1 }]],
    [SOL, [{ lamports: '5' }]],
    [USDC, [{ lamports: 1 }]],
    [USDC, [held(Buffer.alloc(108).toString('base64'))]],
    [USDC, [{ ...held(''), data: 'text' }]],
  ] as const)
    await assert.rejects(node(value).balances([OWNER], asset), RpcUnavailable)
  await assert.rejects(node([]).balances(Array<string>(BALANCES_MAX + 1).fill(OWNER), SOL), {
    code: 'TOO_MANY_ADDRESSES',
  })
  await assert.rejects(node([null]).balances([OWNER], SOL, 5), RpcRefused)
})

test('the local chain returns the same balances together as one by one', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'chains-devnet-'))
  const main = fileURLToPath(new URL('../../../devnet/src/main.ts', import.meta.url))
  const devnet = spawn(process.execPath, [main, '--home', home, '--port', '0'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => devnet.once('exit', resolve))
  t.after(async () => {
    devnet.kill('SIGTERM')
    await ended
    rmSync(home, { recursive: true, force: true })
  })
  const url = await new Promise<string>((resolve, reject) => {
    let text = ''
    devnet.stdout.on('data', (part: Buffer) => {
      text += part.toString()
      const ready = /^devnet ready (\S+)$/m.exec(text)
      if (ready) resolve(ready[1] as string)
    })
    devnet.once('exit', (code) => reject(new Error(`the local chains ended with ${String(code)}`)))
  })
  const network = local.network('SOL')!
  const assets = local.assetsOf('SOL')
  const single = new SolanaClient(network, assets, { url: `${url}/sol` }, fetch)
  const addresses = Array.from({ length: 130 }, (_, at) =>
    base58.encode(ed25519.getPublicKey(Buffer.alloc(32, at + 1))),
  )
  for (const asset of assets) {
    for (const at of [0, 99, 100, 129])
      await fetch(`${url}/control`, {
        method: 'POST',
        body: JSON.stringify({
          command: 'fund',
          asset: asset.asset_name,
          address: addresses[at],
          amount: `${at + 1}.5`,
        }),
      })
    const balances = await single.balances(addresses, asset)
    assert.deepEqual(
      balances.flatMap((each, at) => (each > 0n ? [at] : [])),
      [0, 99, 100, 129],
      asset.asset_name,
    )
    const unit = 10n ** BigInt(asset.decimals)
    assert.equal(balances[129], 130n * unit + unit / 2n)
    for (const at of [0, 1, 100])
      assert.equal(balances[at], await single.balance(addresses[at]!, asset))
  }
})
