import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import * as libauth from '@bitauth/libauth'
import { script, Transaction } from 'bitcoinjs-lib'
import { sign } from 'viem/accounts'
import { key } from '../../testing/bitcoin-keys.ts'
import { startDevnet, removeHome, tempHome, type Running } from '../../testing/support.ts'

const home = tempHome()
let devnet: Running
before(async () => {
  devnet = await startDevnet(home)
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

const COIN = 100_000_000n
const alice = key(77)
const hash160 = (bytes: Uint8Array): Buffer =>
  createHash('ripemd160').update(createHash('sha256').update(bytes).digest()).digest()
const keyHash = hash160(alice.publicKey)
const p2pkh = Buffer.concat([Buffer.from('76a914', 'hex'), keyHash, Buffer.from('88ac', 'hex')])
const p2wpkh = Buffer.concat([Buffer.from([0, 20]), keyHash])

/** Properties in which the chains differ, with the terms that their nodes use. */
const CHAINS = {
  LTC: { script: p2wpkh, hashType: 0x01, dust: 2940n, fee: 1000n, maturity: 100 },
  DASH: { script: p2pkh, hashType: 0x01, dust: 546n, fee: 1000n, maturity: 100 },
  DOGE: { script: p2pkh, hashType: 0x01, dust: 100_000n, fee: 1_000_000n, maturity: 60 },
  BCH: { script: p2pkh, hashType: 0x41, dust: 546n, fee: 1000n, maturity: 100 },
} as const
type Code = keyof typeof CHAINS
const CODES = Object.keys(CHAINS) as Code[]

const url = (code: string): string => `${devnet.url}/${code.toLowerCase()}`
async function rpc<T>(code: Code, method: string, ...params: unknown[]): Promise<T> {
  const answer = await fetch(url(code), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const { result, error } = (await answer.json()) as {
    result: T
    error?: { code: number; message: string }
  }
  if (error) throw Object.assign(new Error(error.message), { code: error.code })
  return result
}
interface Verbose {
  vout: { n: number; value: number; scriptPubKey: { hex: string; address?: string } }[]
  blockhash?: string
  confirmations?: number
  chainlock?: boolean
}

async function addressOf(code: Code): Promise<string> {
  if (code === 'LTC') {
    const encoded = libauth.encodeBech32([
      0,
      ...(libauth.regroupBits({
        bin: keyHash,
        resultWordLength: 5,
        sourceWordLength: 8,
      }) as number[]),
    ])
    return `rltc1${encoded}${bech32Checksum('rltc', encoded)}`
  }
  if (code === 'BCH') {
    return (
      libauth.lockingBytecodeToCashAddress({
        bytecode: Uint8Array.from(p2pkh),
        prefix: 'bchreg',
      }) as { address: string }
    ).address
  }
  return base58(code === 'DASH' ? 140 : 111, keyHash)
}

/** Returns a coin of 10 of the test's own key, in a block. */
async function coin(code: Code): Promise<{ txid: string; vout: number; value: bigint }> {
  const { hash } = await devnet.control<{ hash: string }>({
    command: 'fund',
    asset: code,
    address: await addressOf(code),
    amount: '10',
  })
  const funding = await rpc<Verbose>(code, 'getrawtransaction', hash, true)
  const output = funding.vout.find(
    (each) => each.scriptPubKey.hex === CHAINS[code].script.toString('hex'),
  )
  assert.ok(output, `${code}: the faucet's output has another script`)
  return { txid: hash, vout: output.n, value: 10n * COIN }
}

interface Shape {
  hashType?: number
  sequence?: number
  tamper?: boolean
  witness?: boolean
  digest?: 'legacy' | 'value'
  to?: Buffer
}

async function spend(
  code: Code,
  from: { txid: string; vout: number; value: bigint },
  amount: bigint,
  shape: Shape = {},
): Promise<Transaction> {
  const rules = CHAINS[code]
  const tx = new Transaction()
  tx.version = 2
  tx.addInput(Buffer.from(from.txid, 'hex').reverse(), from.vout, shape.sequence ?? 0xffffffff)
  tx.addOutput(shape.to ?? rules.script, amount)
  const hashType = shape.hashType ?? rules.hashType
  const withValue =
    (shape.digest ?? (code === 'LTC' || code === 'BCH' ? 'value' : 'legacy')) === 'value'
  const digest = withValue
    ? tx.hashForWitnessV0(0, p2pkh, from.value, hashType)
    : tx.hashForSignature(0, p2pkh, hashType)
  const { r, s } = await sign({
    hash: `0x${Buffer.from(digest).toString('hex')}`,
    privateKey: alice.privateKey,
  })
  const der = Buffer.concat([
    Buffer.from(script.signature.encode(Buffer.from(r.slice(2) + s.slice(2), 'hex'), 1)).subarray(
      0,
      -1,
    ),
    Buffer.from([hashType]),
  ])
  if (shape.tamper) der[12]! ^= 1
  if (code === 'LTC' || shape.witness) tx.setWitness(0, [der, alice.publicKey])
  else tx.setInputScript(0, script.compile([der, alice.publicKey]))
  return tx
}

const refusal = async (code: Code, tx: Transaction): Promise<string> =>
  rpc(code, 'sendrawtransaction', tx.toHex()).then(
    () => 'accepted',
    (error: Error) => error.message,
  )

test('each chain starts on first use', async () => {
  const { networks } = await devnet.control<{
    networks: Record<string, { height: number | null }>
  }>({ command: 'info' })
  for (const code of CODES) assert.equal(networks[code]?.height, null, code)
})

test('addresses equal those of another library, and the faucet pays them', async () => {
  for (const code of CODES) {
    const { txid, vout } = await coin(code)
    const funding = await rpc<Verbose>(code, 'getrawtransaction', txid, true)
    assert.equal(funding.vout[vout]?.scriptPubKey.address, await addressOf(code))
    assert.equal(
      (await rpc<{ isvalid: boolean }>(code, 'validateaddress', await addressOf(code))).isvalid,
      true,
    )
  }
})

test('accepts and mines a correctly signed payment, and refuses a changed signature', async () => {
  for (const code of CODES) {
    const from = await coin(code)
    const amount = from.value - CHAINS[code].fee
    assert.match(
      await refusal(code, await spend(code, from, amount, { tamper: true })),
      /script-verify-flag-failed/,
    )
    const tx = await spend(code, from, amount)
    assert.equal(await refusal(code, tx), 'accepted', code)
    assert.equal(await refusal(code, tx), 'accepted', 'the same bytes again are no error')
    await devnet.control({ command: 'mine', network: code, blocks: 1 })
    assert.equal((await rpc<Verbose>(code, 'getrawtransaction', tx.getId(), true)).confirmations, 1)
  }
})

test('BCH: refuses signatures without FORKID; other chains refuse signatures with FORKID', async () => {
  const from = await coin('BCH')
  const amount = from.value - 1000n
  assert.match(
    await refusal('BCH', await spend('BCH', from, amount, { hashType: 0x01 })),
    /script-verify-flag-failed/,
  )
  assert.match(
    await refusal('BCH', await spend('BCH', from, amount, { hashType: 0x01, digest: 'legacy' })),
    /script-verify-flag-failed/,
  )
  assert.match(
    await refusal('BCH', await spend('BCH', { ...from, value: from.value - 1n }, amount)),
    /script-verify-flag-failed/,
    'the signature covers the amount',
  )
  for (const code of ['DASH', 'DOGE'] as const) {
    const own = await coin(code)
    assert.match(
      await refusal(
        code,
        await spend(code, own, own.value - CHAINS[code].fee, { hashType: 0x41, digest: 'value' }),
      ),
      /script-verify-flag/,
      code,
    )
  }
})

test('DASH, DOGE and BCH refuse transactions with a witness', async () => {
  for (const code of ['DASH', 'DOGE', 'BCH'] as const) {
    const from = await coin(code)
    assert.match(
      await refusal(
        code,
        await spend(code, from, from.value - CHAINS[code].fee, {
          witness: true,
          digest: 'value',
          hashType: 1,
        }),
      ),
      /TX decode failed/,
    )
    assert.equal(
      await refusal(code, await spend(code, from, from.value - CHAINS[code].fee, { to: p2wpkh })),
      'scriptpubkey',
    )
  }
})

test('a transaction that signals replacement is accepted, and its replacement is refused', async () => {
  for (const code of CODES) {
    const from = await coin(code)
    const { fee } = CHAINS[code]
    const sequence = 0xfffffffd
    assert.equal(
      await refusal(code, await spend(code, from, from.value - fee, { sequence })),
      'accepted',
    )
    assert.equal(
      await refusal(code, await spend(code, from, from.value - 5n * fee, { sequence })),
      'txn-mempool-conflict',
      code,
    )
    await devnet.control({ command: 'mine', network: code, blocks: 1 })
  }
})

test('enforces the minimum fee, and dust limits exact to the smallest unit', async () => {
  for (const code of CODES) {
    const { dust } = CHAINS[code]
    const from = await coin(code)
    // The rest is the fee; only the output is checked.
    const small = { ...from, value: from.value }
    assert.equal(await refusal(code, await spend(code, small, dust - 1n)), 'dust', code)
    assert.notEqual(await refusal(code, await spend(code, small, dust)), 'dust', code)
    const low = await coin(code)
    assert.match(
      await refusal(code, await spend(code, low, low.value - 50n)),
      /min relay fee not met/,
      code,
    )
  }
})

test('a coinbase output can be spent after each chain’s own maturity', async () => {
  for (const code of CODES) {
    const blockAt = async (at: number) =>
      rpc<{ tx: string[] }>(code, 'getblock', await rpc<string>(code, 'getblockhash', at), 1)
    const attempt = async (at: number): Promise<string> => {
      const tx = new Transaction()
      tx.version = 2
      tx.addInput(Buffer.from((await blockAt(at)).tx[0]!, 'hex').reverse(), 0, 0xffffffff)
      tx.addOutput(CHAINS[code].script, COIN / 1000n)
      tx.setInputScript(0, script.compile([Buffer.alloc(71, 1), alice.publicKey]))
      return refusal(code, tx)
    }
    const { maturity } = CHAINS[code]
    // The boundary moves with each block: both sides are tested at one height.
    for (;;) {
      const height = await rpc<number>(code, 'getblockcount')
      const [young, old] = [
        await attempt(height - maturity + 2),
        await attempt(height - maturity + 1),
      ]
      if ((await rpc<number>(code, 'getblockcount')) !== height) continue
      assert.match(young, /premature-spend-of-coinbase/, code)
      assert.doesNotMatch(old, /premature-spend-of-coinbase/, code)
      break
    }
  }
})

test("reproduces the differences between the RPC interfaces of the chains' nodes", async () => {
  await assert.rejects(rpc('BCH', 'estimatesmartfee', 6), { code: -32601 })
  assert.equal(await rpc<number>('BCH', 'estimatefee'), 0.00001)
  assert.equal((await rpc<{ feerate: number }>('DOGE', 'estimatesmartfee', 6)).feerate, -1)
  const head = await rpc<string>('DOGE', 'getbestblockhash')
  assert.equal(
    typeof (await rpc<{ tx: unknown[] }>('DOGE', 'getblock', head, true)).tx[0],
    'string',
  )
  const dash = await rpc<number>('DASH', 'getblockcount')
  const locked = async (height: number) =>
    (
      await rpc<{ chainlock?: boolean }>(
        'DASH',
        'getblock',
        await rpc<string>('DASH', 'getblockhash', height),
        1,
      )
    ).chainlock
  assert.deepEqual([await locked(dash), await locked(dash - 1)], [false, true])
  assert.equal(
    await rpc<string>('LTC', 'getblockhash', 0),
    '530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9',
  )
  assert.equal(
    await rpc<string>('DOGE', 'getblockhash', 0),
    '3d2160a3b5dc4a9d62e7e66a295f70313ac808440ef7400d6c0772171ce973a5',
  )
})

test('every block exists after a reorganisation and a kill', async () => {
  const heads: Record<string, string> = {}
  for (const code of CODES) {
    const from = await coin(code)
    const tx = await spend(code, from, from.value - CHAINS[code].fee)
    assert.equal(await refusal(code, tx), 'accepted')
    await devnet.control({ command: 'mine', network: code, blocks: 1 })
    await devnet.control({ command: 'reorg', network: code, depth: 1 })
    await devnet.control({ command: 'mine', network: code, blocks: 1 })
    assert.ok(
      (await rpc<Verbose>(code, 'getrawtransaction', tx.getId(), true)).confirmations! >= 1,
      code,
    )
    heads[code] = await rpc<string>(code, 'getblockhash', await rpc<number>(code, 'getblockcount'))
  }
  await devnet.killAll()
  devnet = await startDevnet(home)
  for (const code of CODES)
    assert.equal(
      (await rpc<{ hash: string }>(code, 'getblockheader', heads[code]!)).hash,
      heads[code],
    )
})

function base58(version: number, hash: Buffer): string {
  return libauth.encodeBase58AddressFormat(version, Uint8Array.from(hash))
}

/** BIP173, implemented again to test the ledger's implementation. */
function bech32Checksum(hrp: string, data: string): string {
  const letters = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
  const values = [
    ...Array.from(hrp, (c) => c.charCodeAt(0) >> 5),
    0,
    ...Array.from(hrp, (c) => c.charCodeAt(0) & 31),
    ...Array.from(data, (c) => letters.indexOf(c)),
    0,
    0,
    0,
    0,
    0,
    0,
  ]
  let check = 1
  for (const value of values) {
    const top = check >>> 25
    check = ((check & 0x1ffffff) << 5) ^ value
    for (const [bit, generator] of [
      0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3,
    ].entries()) {
      if ((top >>> bit) & 1) check ^= generator
    }
  }
  check = (check ^ 1) >>> 0
  return Array.from({ length: 6 }, (_, at) => letters[(check >>> (5 * (5 - at))) & 31]).join('')
}
