// The client of Tron nodes, with the local chain and with responses that no honest node returns.
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  familyOf,
  RpcRefused,
  RpcReverted,
  RpcUnavailable,
  tron,
  TronClient,
  type Asset,
  type SignedTransaction,
  type UnsignedTransaction,
} from '../index.ts'
import { publicKeyAt, sign } from '../../testing/support.ts'
import { assetsOf, networkOf, TO } from '../../testing/tron-support.ts'

const NETWORK = networkOf('local')
const ASSETS = assetsOf('local')
const assetOf = (name: string) => ASSETS.find((asset) => asset.asset_name === name) as Asset
const [TRX, USDT] = [assetOf('TRX'), assetOf('USDT_TRX')]
const family = familyOf(NETWORK)
const at = (index: number) => ({ path: [1, 195, index], publicKey: publicKeyAt([1, 195, index]) })
const addressAt = (index: number) => family.address(NETWORK, at(index).publicKey)
const DAY = 86_400

const home = mkdtempSync(join(tmpdir(), 'chains-tron-'))
let devnet: ChildProcess
let url: string
let client: TronClient

before(async () => {
  const main = fileURLToPath(new URL('../../../devnet/src/main.ts', import.meta.url))
  devnet = spawn(process.execPath, [main, '--home', home, '--port', '0'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  url = await new Promise<string>((resolve, reject) => {
    let text = ''
    devnet.stdout?.on('data', (part: Buffer) => {
      text += part.toString()
      const ready = /^devnet ready (\S+)$/m.exec(text)
      if (ready) resolve(ready[1] as string)
    })
    devnet.once('exit', (code) => reject(new Error(`the local chains ended with ${String(code)}`)))
  })
  client = new TronClient(NETWORK, ASSETS, { url: `${url}/trx` }, fetch)
  await control({ command: 'fund', asset: 'TRX', address: addressAt(0), amount: '50000' })
  await control({ command: 'fund', asset: 'USDT_TRX', address: addressAt(0), amount: '1000' })
})
after(async () => {
  const ended = new Promise((resolve) => devnet.once('exit', resolve))
  devnet.kill('SIGTERM')
  await ended
  rmSync(home, { recursive: true, force: true, maxRetries: 5 })
})

async function control(
  command: Record<string, unknown>,
): Promise<{ hash: string; height: number }> {
  const response = await fetch(`${url}/control`, { method: 'POST', body: JSON.stringify(command) })
  const body = (await response.json()) as { error?: string; hash: string; height: number }
  assert.equal(response.status, 200, body.error)
  return body
}
const mine = (blocks = 1) => control({ command: 'mine', network: 'TRX', blocks })

function signed(unsigned: UnsignedTransaction): SignedTransaction {
  family.decode(NETWORK, unsigned, ASSETS, publicKeyAt)
  return family.assemble(
    NETWORK,
    unsigned,
    sign(family.signing(NETWORK, unsigned, publicKeyAt)),
    publicKeyAt,
  )
}

async function send(unsigned: UnsignedTransaction): Promise<string> {
  const { raw, hash } = signed(unsigned)
  assert.deepEqual(await client.broadcast(raw), { kind: 'accepted' })
  assert.deepEqual(await client.broadcast(raw), { kind: 'accepted' }, 'the same bytes again')
  await mine()
  return hash
}

const common = async (index = 0) => ({ reference: await client.reference(), ...at(index) })
const included = async (hash: string, expected?: Parameters<TronClient['status']>[1]) => {
  const status = await client.status(hash, expected)
  assert.equal(status.state, 'included')
  return status as Extract<typeof status, { state: 'included' }>
}

test('identifies the endpoint’s network by its first block', async () => {
  await client.probe()
  await assert.rejects(
    new TronClient(networkOf('mainnet'), ASSETS, { url: `${url}/trx` }, fetch).probe(),
    { code: 'WRONG_NETWORK' },
  )
})

test('a transfer of TRX is a deposit, costs the activation fee, and becomes final', async () => {
  const to = addressAt(1)
  const unsigned = tron.buildTransfer(NETWORK, {
    ...(await common()),
    asset: TRX,
    to,
    amount: 3_000_000n,
  })
  const hash = await send(unsigned)
  const status = await included(hash)
  assert.deepEqual([status.succeeded, status.fee], [true, 1_100_000n])
  assert.ok((status.fee as bigint) <= family.decode(NETWORK, unsigned, ASSETS, publicKeyAt).fee_max)
  const block = await client.block(status.height)
  assert.deepEqual([block?.hash, block?.txids], [status.blockHash, [hash]])
  assert.deepEqual(block?.transfers, [
    {
      txid: hash,
      position: -1,
      asset: 'TRX',
      address: to,
      amount: 3_000_000n,
      sender: addressAt(0),
      senders: { addresses: [addressAt(0)], complete: true },
      coinbase: false,
    },
  ])
  assert.equal(block?.parent, (await client.block(status.height - 1))?.hash)
  assert.equal(await client.balance(to, TRX), 3_000_000n)
  await mine(2)
  assert.ok(((await client.tip()).finalHeight as number) >= status.height)
  assert.equal(await client.block(10 ** 6), null)
})

test('a token transfer within its estimate is detected as a deposit by its log', async () => {
  const to = addressAt(2)
  const { energySun } = await client.parameters()
  const energy = await client.energy({ asset: USDT, from: addressAt(0), to, amount: 12_345n })
  const unsigned = tron.buildTransfer(NETWORK, {
    ...(await common()),
    asset: USDT,
    to,
    amount: 12_345n,
    feeLimit: tron.feeLimitFor(energy, energySun),
  })
  const hash = await send(unsigned)
  const status = await included(hash, { asset: USDT, from: addressAt(0), to })
  assert.equal(status.succeeded, true)
  assert.ok(
    (status.fee as bigint) >= energy * energySun &&
      (status.fee as bigint) <= family.decode(NETWORK, unsigned, ASSETS, publicKeyAt).fee_max,
  )
  assert.equal(
    (await included(hash, { asset: USDT, from: addressAt(0), to: addressAt(3) })).succeeded,
    false,
    'to another',
  )
  assert.equal(
    (await included(hash, { asset: assetOf('USDC_TRX'), from: addressAt(0), to })).succeeded,
    false,
    'another token',
  )
  assert.deepEqual((await client.block(status.height))?.transfers, [
    {
      txid: hash,
      position: 0,
      asset: 'USDT_TRX',
      address: to,
      amount: 12_345n,
      sender: addressAt(0),
      senders: { addresses: [addressAt(0)], complete: true },
      coinbase: false,
    },
  ])
  assert.deepEqual([await client.balance(to, USDT), await client.balance(to, TRX)], [12_345n, 0n])
})

test('a transfer that runs out of energy costs its fee, but is no success and no deposit', async () => {
  const to = addressAt(4)
  const hash = await send(
    tron.buildTransfer(NETWORK, {
      ...(await common()),
      asset: USDT,
      to,
      amount: 1n,
      feeLimit: 1_000_000n,
    }),
  )
  const status = await included(hash)
  assert.equal(status.succeeded, false)
  assert.ok((status.fee as bigint) >= 1_000_000n)
  assert.deepEqual((await client.block(status.height))?.transfers, [])
})

test('refuses to build a transfer that would revert', async () => {
  await assert.rejects(
    client.energy({ asset: USDT, from: addressAt(9), to: TO, amount: 1n }),
    RpcReverted,
  )
})

test('an energy estimate is refused only if the call failed; other errors are unavailability', async () => {
  const ask = () => scripted().energy({ asset: USDT, from: addressAt(9), to: TO, amount: 1n })
  const hex = (text: string): string => Buffer.from(text).toString('hex')
  const answered = (answer: object): void => {
    script = { 'wallet/triggerconstantcontract': JSON.stringify(answer) }
  }
  for (const ret of ['FAILED', 'REVERT', 'OUT_OF_ENERGY']) {
    answered({
      result: { result: true, message: hex('REVERT opcode executed') },
      energy_used: 5,
      transaction: { ret: [{ ret }] },
    })
    await assert.rejects(
      ask(),
      (error: unknown) =>
        error instanceof RpcReverted && /REVERT opcode executed/.test(error.message),
    )
  }
  for (const answer of [
    ...[
      'OTHER_ERROR',
      'SERVER_BUSY',
      'CONTRACT_VALIDATE_ERROR',
      'CONTRACT_EXE_ERROR',
      'NO_CONNECTION',
    ].map((code) => ({ result: { code, message: hex('no contract') } })),
    {
      result: { result: true, message: hex('CPU timeout for 0x5b while executing: Out of time') },
      transaction: { ret: [{ ret: 'FAILED' }] },
    },
    { result: { result: true }, transaction: { ret: [{ ret: 'OUT_OF_TIME' }] } },
    {},
  ]) {
    answered(answer)
    await assert.rejects(ask(), RpcUnavailable, JSON.stringify(answer))
  }
})

test('staking: freezes, delegates, undelegates, unfreezes, waits and withdraws', async () => {
  const stake = { resource: 'ENERGY', amount: 10_000_000_000n } as const
  await send(tron.buildFreeze(NETWORK, { ...(await common()), ...stake }))
  const account = await client.account(addressAt(0))
  assert.equal(account?.staked.ENERGY, stake.amount)
  assert.ok((account?.energy ?? 0n) > 94_000n)
  const max = await client.delegatable(addressAt(0), 'ENERGY')
  assert.ok(max > 9_000_000_000n)
  const lend = { resource: 'ENERGY', amount: 9_000_000_000n, receiver: addressAt(1) } as const
  await send(tron.buildDelegate(NETWORK, { ...(await common()), ...lend }))
  assert.deepEqual(await client.delegated(addressAt(0), addressAt(1)), {
    ENERGY: lend.amount,
    BANDWIDTH: 0n,
  })
  assert.ok((await client.resources(addressAt(1))).energyLeft > 85_000n)
  await send(tron.buildUndelegate(NETWORK, { ...(await common()), ...lend }))
  assert.deepEqual(await client.delegated(addressAt(0), addressAt(1)), {
    ENERGY: 0n,
    BANDWIDTH: 0n,
  })
  assert.equal(await client.unfreezesLeft(addressAt(0)), 32)
  await send(tron.buildUnfreeze(NETWORK, { ...(await common()), ...stake }))
  assert.equal(await client.unfreezesLeft(addressAt(0)), 31)
  assert.equal((await client.account(addressAt(0)))?.unfreezing[0]?.amount, stake.amount)
  assert.equal(await client.withdrawable(addressAt(0)), 0n)
  const early = await client.broadcast(signed(tron.buildWithdraw(NETWORK, await common())).raw)
  assert.equal(early.kind, 'rejected')
  const { unfreezeDelayDays } = await client.parameters()
  await control({ command: 'clock', network: 'TRX', advance: `+${unfreezeDelayDays}d` })
  assert.equal(await client.withdrawable(addressAt(0)), stake.amount)
  const before = await client.balance(addressAt(0), TRX)
  const hash = await send(tron.buildWithdraw(NETWORK, await common()))
  assert.equal(
    (await client.balance(addressAt(0), TRX)) - before,
    stake.amount - ((await included(hash)).fee as bigint),
  )
  const { staking } = await included(hash)
  assert.deepEqual(
    [staking?.withdrawn, (staking?.time ?? 0) <= (await client.headTime())],
    [stake.amount, true],
  )
  assert.equal(await client.account(addressAt(77)), null)
})

test('references are unique, and a transaction expires when a final block is past its expiry', async () => {
  const [one, two] = [await client.reference(), await client.reference()]
  assert.notEqual(one.timestamp, two.timestamp)
  const unsigned = tron.buildTransfer(NETWORK, {
    reference: one,
    ...at(0),
    asset: TRX,
    to: TO,
    amount: 1n,
  })
  const { raw, hash } = signed(unsigned)
  const end = family.decode(NETWORK, unsigned, ASSETS, publicKeyAt).valid_until as number
  assert.deepEqual(await client.status(hash), { state: 'absent' })
  assert.equal(await client.isDead(hash, end), false)
  await control({ command: 'clock', network: 'TRX', advance: '+11m' })
  assert.equal(await client.isDead(hash, end), false, 'past its end, but not yet for good')
  await mine(2)
  assert.equal(await client.isDead(hash, end), true)
  const late = await client.broadcast(raw)
  assert.equal(late.kind, 'rejected')
  assert.match(late.kind === 'rejected' ? late.reason : '', /TRANSACTION_EXPIRATION_ERROR/)
  const paid = await send(
    tron.buildTransfer(NETWORK, { ...(await common()), asset: TRX, to: TO, amount: 1n }),
  )
  await mine(3)
  assert.equal(await client.isDead(paid, end - DAY), false, 'an included one never is')
})

test('finds a waiting transaction in the pool; a broadcast to a failing node has no known result', async () => {
  // The chain is halted, because an automatic block would remove the transaction from the pool.
  await control({ command: 'halt', network: 'TRX', halted: true })
  const { raw, hash } = signed(
    tron.buildTransfer(NETWORK, { ...(await common()), asset: TRX, to: TO, amount: 2n }),
  )
  await control({ command: 'fault', network: 'TRX', mode: 'reject' })
  assert.equal((await client.broadcast(raw)).kind, 'unknown')
  await control({ command: 'fault', network: 'TRX', mode: 'down' })
  assert.equal((await client.broadcast(raw)).kind, 'unknown')
  await control({ command: 'fault', network: 'TRX', mode: 'heal' })
  assert.equal((await client.broadcast(raw)).kind, 'accepted')
  assert.deepEqual(await client.status(hash), { state: 'mempool' })
  await control({ command: 'halt', network: 'TRX', halted: false })
  await mine()
  await included(hash)
})

// A scripted node: path → JSON text.
let script: Record<string, string> = {}
let onRequest = (_path: string): void => undefined
let server: Server
before(async () => {
  server = createServer((request, response) => {
    const path = (request.url ?? '').slice('/key-in-path-4711/'.length)
    const answer = script[path]
    onRequest(path)
    request.resume()
    response.writeHead(answer === undefined ? 404 : 200).end(answer ?? 'no such path')
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
})
after(() => {
  server.closeAllConnections()
  server.close()
})
const scripted = () =>
  new TronClient(
    NETWORK,
    ASSETS,
    { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/key-in-path-4711/` },
    fetch,
  )

const ID = '0000000000000007'.padEnd(64, 'a')
const TXID = 'cd'.repeat(32)
const contract = tronHex(USDT.contract_address as string)
function tronHex(address: string): string {
  return Buffer.from(tron.transferData(address, 0n)).subarray(16, 36).toString('hex')
}
const word = (hex: string) => hex.padStart(64, '0')
const header = `"blockID":"${ID}","block_header":{"raw_data":{"number":7,"parentHash":"${'b'.repeat(64)}","timestamp":1700000000000}}`
const call = (ret = 'SUCCESS') =>
  `{"ret":[{"contractRet":"${ret}"}],"txID":"${TXID}","raw_data":{"contract":[{"type":"TriggerSmartContract","parameter":{"value":{"owner_address":"41${tronHex(TO)}"}}}]}}`
const log = (o: { address?: string; topic?: string; data?: string; topics?: number } = {}) =>
  `{"address":"${o.address ?? contract}","topics":["${o.topic ?? 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'}"${`,"${word(tronHex(TO))}"`.repeat(o.topics ?? 2)}],"data":"${o.data ?? word('05')}"}`
const info = (logs: string[], more = '') =>
  `[{"id":"${TXID}","blockNumber":7,"log":[${logs.join(',')}]${more}}]`
const blockWith = async (transactions: string, infos: string) => {
  script = {
    'wallet/getblockbynum': `{${header},"transactions":[${transactions}]}`,
    'wallet/gettransactioninfobyblocknum': infos,
  }
  return (await scripted().block(7))?.transfers
}

test("only the token's own Transfer of a successful call is a deposit", async () => {
  assert.equal((await blockWith(call(), info([log()])))?.[0]?.amount, 5n)
  assert.equal(
    (await blockWith(call(), info([log({ data: 'f'.repeat(64) })])))?.[0]?.amount,
    2n ** 256n - 1n,
  )
  for (const logs of [
    [log({ address: tronHex(TO) })],
    [log({ topic: word('01') })],
    [log({ data: word('') })],
    [log({ data: '05' })],
    [log({ data: `${word('05')}${word('05')}` })],
    [log({ topics: 1 })],
    [log({ topics: 3 })],
    [],
  ]) {
    assert.deepEqual(await blockWith(call(), info(logs)), [], logs[0])
  }
  assert.deepEqual(await blockWith(call('REVERT'), info([log()])), [])
  assert.deepEqual(await blockWith(call(), info([log()], ',"result":"FAILED"')), [])
})

test('refuses receipts that are missing, of another block or of another transaction', async () => {
  for (const infos of [
    '[]',
    '{}',
    info([log()]).replace('"blockNumber":7', '"blockNumber":8'),
    info([log()]).replace(TXID, 'ef'.repeat(32)),
  ]) {
    await assert.rejects(blockWith(call(), infos), RpcUnavailable, infos)
  }
  script = { 'wallet/getblockbynum': `{${header}}` }
  await assert.rejects(scripted().block(8), RpcUnavailable)
  script = { 'wallet/getblockbynum': '{}' }
  assert.equal(await scripted().block(8), null)
})

test('counts only successful native transfers, exact above 2^53', async () => {
  const transfer = (amount: string, ret = 'SUCCESS', type = 'TransferContract') =>
    `{"ret":[{"contractRet":"${ret}"}],"txID":"${TXID}","raw_data":{"contract":[{"type":"${type}","parameter":{"value":{"amount":${amount},"owner_address":"41${tronHex(addressAt(0))}","to_address":"41${tronHex(TO)}"}}}]}}`
  assert.deepEqual(
    (await blockWith(transfer('9007199254740993'), '[]'))?.map(({ amount, address, sender }) => [
      amount,
      address,
      sender,
    ]),
    [[9_007_199_254_740_993n, TO, addressAt(0)]],
  )
  assert.deepEqual(await blockWith(transfer('5', 'OUT_OF_ENERGY'), '[]'), [])
  assert.deepEqual(await blockWith(transfer('0'), '[]'), [])
  assert.deepEqual(await blockWith(transfer('5', 'SUCCESS', 'TransferAssetContract'), '[]'), [])
})

test('refuses malformed responses', async () => {
  for (const text of ['', 'busy', '[', 'null', '"x"', '7']) {
    script = { 'wallet/getnowblock': text }
    await assert.rejects(
      scripted().tip(),
      (error: unknown) => error instanceof RpcUnavailable && !error.message.includes('key-in-path'),
      text,
    )
  }
  script = {}
  await assert.rejects(scripted().tip(), RpcUnavailable)
  script = { 'wallet/getnowblock': '{}' }
  await assert.rejects(scripted().tip(), RpcUnavailable)
  script = { 'wallet/getnowblock': '{"Error":"class java.lang.NullPointerException : null"}' }
  await assert.rejects(scripted().tip(), RpcRefused)
  script = {
    'wallet/getchainparameters': '{"chainParameter":[{"key":"getEnergyFee","value":100}]}',
  }
  await assert.rejects(scripted().parameters(), /does not return/)
})

test('a transaction included between the two queries is reported as included, never absent', async () => {
  script = { 'wallet/gettransactioninfobyid': '{}', 'wallet/gettransactionfrompending': '{}' }
  assert.deepEqual(await scripted().status(TXID), { state: 'absent' })
  onRequest = (path) => {
    if (path !== 'wallet/gettransactionfrompending') return
    script['wallet/gettransactioninfobyid'] = `{"id":"${TXID}","blockNumber":7}`
    script['wallet/getblockbynum'] = `{${header},"transactions":[${call()}]}`
  }
  const status = await scripted().status(TXID)
  onRequest = () => undefined
  assert.deepEqual(
    status.state === 'included' && [status.height, status.blockHash, status.succeeded],
    [7, ID, true],
  )
})

test('a broadcast has a known result only after success or a duplicate error', async () => {
  const kindOf = async (text: string) => {
    script = { 'wallet/broadcasthex': text }
    return (await scripted().broadcast('00')).kind
  }
  assert.equal(await kindOf('{"result":true,"code":"SUCCESS"}'), 'accepted')
  assert.equal(await kindOf('{"code":"DUP_TRANSACTION_ERROR","message":"447570"}'), 'accepted')
  for (const code of [
    'SIGERROR',
    'CONTRACT_VALIDATE_ERROR',
    'TAPOS_ERROR',
    'TRANSACTION_EXPIRATION_ERROR',
    'BANDWITH_ERROR',
  ])
    assert.equal(await kindOf(`{"code":"${code}"}`), 'rejected', code)
  for (const text of [
    '{"code":"SERVER_BUSY"}',
    '{"code":"NO_CONNECTION"}',
    '{}',
    '{"result":false}',
    'x',
  ])
    assert.equal(await kindOf(text), 'unknown', text)
})
