// A rehearsal (CUSTODY_NETWORK=regtest) on nodes of others with their default options: geth, and
// Litecoin Core, which behaves as Bitcoin Core. What is not installed is skipped.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseEther, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { GethChain } from '../../devnet/testing/geth.ts'
import { Litecoind } from '../../../testing/litecoind.ts'
import { nodeForTests } from '../../../testing/real-nodes.ts'
import { waitFor } from '../../../testing/wait-for.ts'
import {
  balance,
  call,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'

const [gethNode, litecoinNode] = [nodeForTests('geth'), nodeForTests('litecoind')]
const CHAIN_ID = 271_828
const MODE = `regtest-${CHAIN_ID}`
const PAYEE = '0x00000000000000000000000000000000000000b1'
const payer = privateKeyToAccount(`0x${'42'.repeat(32)}`)

const folder = mkdtempSync(join(tmpdir(), 'custody-rehearsal-'))
const platform = new TestPlatform({ mode: 'empty-home' })
const settings = {
  CUSTODY_NETWORK: MODE,
  CUSTODY_CONFIG: join(folder, 'custody.config.json'),
  // Prices come from public sources, which no test may need.
  CUSTODY_PRICE_EXCHANGES: '',
  CUSTODY_COINGECKO_URL: 'http://127.0.0.1:9',
  CUSTODY_FEES_WITHOUT_PRICE: 'ETH=0,LTC=0',
}
let geth: GethChain | null = null
let litecoind: Litecoind | null = null
let user: User
let nonce = 0

/** Sends coins of the payer, who has them from the first block, and makes a block with the payment. */
async function pay(chain: GethChain, to: string, ether: string): Promise<void> {
  const raw = await payer.signTransaction({
    chainId: CHAIN_ID,
    type: 'eip1559',
    nonce: nonce++,
    to: to as Hex,
    value: parseEther(ether),
    gas: 21_000n,
    maxFeePerGas: 100n * 10n ** 9n,
    maxPriorityFeePerGas: 10n ** 9n,
  })
  await chain.include(await chain.first.call<Hex>('eth_sendRawTransaction', raw))
}

const transferOf = async (id: string): Promise<Transfer> =>
  (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${id}`)).body

async function send(asset: string, amount: string, to: string, more = {}): Promise<string> {
  const created = await call<Transfer>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody(asset, amount, to, more),
  )
  assert.equal(created.status, 200, created.text)
  return created.body.id
}

const received = async (chain: GethChain): Promise<bigint> =>
  BigInt(await chain.first.call<Hex>('eth_getBalance', PAYEE, 'latest'))

/** Waits until a transfer has ended while `step` makes blocks. */
const ended = (id: string, step: () => Promise<unknown>) =>
  waitFor(`transfer ${id}`, async () => {
    await step()
    const transfer = await transferOf(id)
    return transfer.status === 'pending' ? null : transfer
  })

async function newAddress(asset: string): Promise<string> {
  const made = async (path: string) =>
    waitFor(`${path} ${asset}`, async () => {
      const answer = await call<{ address: string; code?: string }>(user, 'POST', path, { asset })
      return answer.status === 200 ? answer.body : null
    })
  await made('/dac/v1/create-wallet')
  return (await made('/dac/v1/address')).address
}

/** Waits until a wallet has a balance while `step` makes blocks. */
const credited = (asset: string, amount: string, step: () => Promise<unknown>) =>
  waitFor(`${amount} ${asset}`, async () => {
    await step()
    return (await balance(user, asset)).balance === amount
  })

before(async () => {
  if (gethNode.skip === false) {
    geth = await GethChain.start({
      binary: gethNode.path,
      chainId: CHAIN_ID,
      alloc: { [payer.address]: 10n ** 24n },
      nodes: 2,
    })
    await geth.finalize(2)
    await geth.mine(3)
  }
  if (litecoinNode.skip === false) {
    litecoind = await Litecoind.start(litecoinNode.path, folder, ['-txindex=1'])
    await litecoind.call('createwallet', 'miner')
    const miner = await litecoind.call('getnewaddress')
    await litecoind.call('generatetoaddress', 101, miner)
  }
  if (!geth && !litecoind) return
  const networks = {
    ...(geth && { ETH: { endpoints: geth.nodes.map(({ url }) => ({ url })) } }),
    ...(litecoind && { LTC: { endpoints: [{ url: litecoind.url, ...litecoind.credentials }] } }),
  }
  writeFileSync(settings.CUSTODY_CONFIG, JSON.stringify({ networks }), { mode: 0o600 })
  await platform.start(settings)
  user = await platform.user('alice')
})
after(async () => {
  await platform.remove()
  await geth?.stop()
  await litecoind?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const onGeth = { skip: gethNode.skip }
const onLitecoin = { skip: litecoinNode.skip }
const either = { skip: gethNode.skip !== false && litecoinNode.skip }

const mineLitecoin = async (blocks = 1) => {
  const node = litecoind as Litecoind
  await node.call('generatetoaddress', blocks, await node.call('getnewaddress'))
}

test('lists the assets of the rehearsal, with its mode', either, async () => {
  const { body } = await call<{ asset_name: string; mode: string }[]>(
    null,
    'GET',
    `${platform.base}/assets`,
  )
  assert.deepEqual(
    body.map(({ asset_name: name, mode }) => [name, mode]),
    [...(litecoind ? [['LTC', MODE]] : []), ...(geth ? [['ETH', MODE]] : [])],
  )
})

test('ETH: a final deposit is credited, and a payout is confirmed', onGeth, async () => {
  const chain = geth as GethChain
  const address = await newAddress('ETH')
  const tank = await platform.operator('gas-tank address', { workspace: 'alice', network: 'ETH' })
  await pay(chain, String(tank['address']), '1')
  await pay(chain, address, '5')
  assert.equal((await balance(user, 'ETH')).balance, '0')
  await credited('ETH', '5', () => chain.mine())
  const done = await ended(await send('ETH', '1.25', PAYEE), () => chain.mine())
  assert.equal(done.status, 'confirmed', String(done.failure_reason))
  assert.equal(await received(chain), parseEther('1.25'))
  assert.equal((await balance(user, 'ETH')).balance, '3.75')
})

test('ETH: payouts go on while an endpoint stays behind, and end once', onGeth, async () => {
  const chain = geth as GethChain
  const [first, second] = chain.nodes
  first!.isHeld = true
  const done = await ended(await send('ETH', '0.5', PAYEE), () => chain.mine(1, second))
  assert.equal(done.status, 'confirmed', String(done.failure_reason))
  first!.isHeld = false
  await chain.follow(first!, second!)
  assert.equal(await received(chain), parseEther('1.75'))
})

test('ETH: a transfer that waits is sped up, and another one is cancelled', onGeth, async () => {
  const chain = geth as GethChain
  const broadcast = async (id: string) =>
    waitFor(`${id} is broadcast`, async () => {
      const { hash, sub_status: state } = await transferOf(id)
      // The fee comes from the gas tank by a transaction of its own.
      if (state === 'FUELING') await chain.mine()
      return state === 'CONFIRMING' && hash
    })
  const slow = await send('ETH', '0.125', PAYEE)
  const earlier = await broadcast(slow)
  const sped = await call(user, 'POST', `/dac/v1/transaction/${slow}/speed-up`, {})
  assert.equal(sped.status, 200, sped.text)
  await waitFor('the replacement', async () => {
    const { hash, sub_status: state } = await transferOf(slow)
    return state === 'CONFIRMING' && hash !== earlier
  })
  const done = await ended(slow, () => chain.mine())
  assert.equal(done.status, 'confirmed', String(done.failure_reason))
  assert.notEqual(done.hash, earlier)

  const unwanted = await send('ETH', '0.25', PAYEE)
  await broadcast(unwanted)
  const cancelled = await call(user, 'POST', `/dac/v1/transaction/${unwanted}/cancel`, {})
  assert.equal(cancelled.status, 200, cancelled.text)
  await waitFor('the cancellation', async () => {
    const { sub_status: state } = await transferOf(unwanted)
    return state !== 'REPLACING'
  })
  const ends = await ended(unwanted, () => chain.mine())
  assert.equal(ends.status, 'failed')
  assert.equal(await received(chain), parseEther('1.875'))
})

test(
  'LTC: a deposit is credited, and a payout survives a node that lost its pool',
  onLitecoin,
  async () => {
    const address = await newAddress('LTC')
    await litecoind!.call('sendtoaddress', address, 5)
    await credited('LTC', '5', () => mineLitecoin(3))
    const payee = await litecoind!.call<string>('getnewaddress')
    const id = await send('LTC', '1.5', payee)
    await waitFor('the payout is in the pool', async () => {
      const pool = await litecoind!.call<string[]>('getrawmempool')
      return pool.includes((await transferOf(id)).hash ?? '')
    })
    const { port } = litecoind as Litecoind
    await litecoind!.stop()
    rmSync(join(folder, 'regtest', 'mempool.dat'))
    litecoind = await Litecoind.start(litecoinNode.path, folder, ['-txindex=1'], port)
    await litecoind.call('loadwallet', 'miner')
    const done = await ended(id, () => mineLitecoin())
    assert.equal(done.status, 'confirmed', String(done.failure_reason))
    assert.equal(Number(await litecoind.call('getreceivedbyaddress', payee)), 1.5)
  },
)

test('the books agree with the chains afterwards', either, async () => {
  const audit = spawnSync(
    process.execPath,
    [join(platform.package, 'bin', 'custody.mjs'), 'audit'],
    {
      encoding: 'utf8',
      env: { ...process.env, ...settings, CUSTODY_HOME: platform.home },
    },
  )
  assert.equal(audit.status, 0, audit.stdout + audit.stderr)
})

test('the home, its nodes and its database belong to this chain id', either, async () => {
  assert.equal(await platform.stop(), 0)
  for (const other of ['local', 'mainnet', 'regtest'])
    await assert.rejects(
      platform.start({ ...settings, CUSTODY_NETWORK: other }),
      (error: Error) => {
        assert.match(error.message, new RegExp(`belongs to the network "${MODE}"`))
        return true
      },
    )
  await platform.start(settings)
})
