// A rehearsal (CUSTODY_NETWORK=regtest) on nodes of others with their default options: geth, Bitcoin
// Core and Litecoin Core. What is not installed is skipped.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { address as addresses } from 'bitcoinjs-lib'
import { parseEther, type Hex } from 'viem'
import { GethChain } from '../../devnet/testing/geth.ts'
import { CoreNode } from '../../../testing/core-node.ts'
import { nodeForTests } from '../../../testing/real-nodes.ts'
import { waitFor } from '../../../testing/wait-for.ts'
import { balance, call } from '../testing/harness.ts'
import { ALLOC, CHAIN_ID, MODE, PAYEE, Rehearsal } from '../testing/rehearsal.ts'

const gethNode = nodeForTests('geth')
const rehearsal = new Rehearsal()
const { platform, folder, settings } = rehearsal
const INDEX = ['-txindex=1']
let geth: GethChain | null = null

/** A node of the Core family, whose coins come from its blocks: it may have no wallet. */
class Core {
  readonly code: string
  readonly skip: string | false
  readonly payee: string
  readonly #elsewhere: string
  readonly #binary: string
  readonly #folder: string
  node!: CoreNode

  constructor(code: string, name: 'bitcoind' | 'litecoind', prefix: string) {
    const { path, skip } = nodeForTests(name)
    this.code = code
    this.skip = skip
    this.payee = addresses.toBech32(new Uint8Array(20).fill(1), 0, prefix)
    this.#elsewhere = addresses.toBech32(new Uint8Array(20).fill(2), 0, prefix)
    this.#binary = path
    this.#folder = join(folder, code)
  }

  async start(options: readonly string[], port?: number): Promise<void> {
    mkdirSync(this.#folder, { recursive: true })
    this.node = await CoreNode.start(this.#binary, this.#folder, options, port)
  }

  /** Restarts the node on the same port. `o.pool`: false if it loses its mempool. */
  async restart(options: readonly string[], { pool = true } = {}): Promise<void> {
    const { port } = this.node
    await this.node.stop()
    if (!pool) rmSync(join(this.#folder, 'regtest', 'mempool.dat'))
    await this.start(options, port)
  }

  async mine(blocks = 1, to = this.#elsewhere): Promise<void> {
    await this.node.call('generatetoaddress', blocks, to)
  }

  /** Returns what the payee has received. */
  async received(): Promise<number> {
    const answer = await this.node.call<{ total_amount: number }>('scantxoutset', 'start', [
      `addr(${this.payee})`,
    ])
    return answer.total_amount
  }
}

const cores = [new Core('BTC', 'bitcoind', 'bcrt'), new Core('LTC', 'litecoind', 'rltc')]
const started = cores.filter(({ skip }) => skip === false)

before(async () => {
  if (gethNode.skip === false) {
    geth = await GethChain.start({
      binary: gethNode.path,
      chainId: CHAIN_ID,
      alloc: ALLOC,
      nodes: 2,
    })
    await geth.finalize(2)
    await geth.mine(3)
  }
  for (const core of started) await core.start(INDEX)
  if (!geth && started.length === 0) return
  await rehearsal.start({
    ...(geth && { ETH: { endpoints: geth.nodes.map(({ url }) => ({ url })) } }),
    ...Object.fromEntries(
      started.map(({ code, node: { url, credentials } }) => [
        code,
        { endpoints: [{ url, ...credentials }] },
      ]),
    ),
  })
})
after(async () => {
  await rehearsal.remove()
  await geth?.stop()
  for (const { node } of started) await node?.stop()
})

const onGeth = { skip: gethNode.skip }
const either = { skip: !gethNode.skip || started.length > 0 ? false : gethNode.skip }

test('lists the assets of the rehearsal, with its mode', either, async () => {
  const { body } = await call<{ asset_name: string; mode: string }[]>(
    null,
    'GET',
    `${platform.base}/assets`,
  )
  assert.deepEqual(
    body.map(({ asset_name: name, mode }) => [name, mode]),
    [...started.map(({ code }) => [code, MODE]), ...(geth ? [['ETH', MODE]] : [])],
  )
})

test('ETH: a final deposit is credited, and a payout is confirmed', onGeth, async () => {
  const chain = geth as GethChain
  const address = await rehearsal.newAddress('ETH')
  const tank = await platform.operator('gas-tank address', { workspace: 'alice', network: 'ETH' })
  await rehearsal.pay(chain, String(tank['address']), '1')
  await rehearsal.pay(chain, address, '5')
  assert.equal((await balance(rehearsal.user, 'ETH')).balance, '0')
  await rehearsal.credited('ETH', '5', () => chain.mine())
  await rehearsal.confirmed(await rehearsal.send('ETH', '1.25', PAYEE), () => chain.mine())
  assert.equal(await rehearsal.received(chain), parseEther('1.25'))
  assert.equal((await balance(rehearsal.user, 'ETH')).balance, '3.75')
})

test('ETH: payouts go on while an endpoint stays behind, and end once', onGeth, async () => {
  const chain = geth as GethChain
  const [first, second] = chain.nodes
  first!.isHeld = true
  await rehearsal.confirmed(await rehearsal.send('ETH', '0.5', PAYEE), () => chain.mine(1, second))
  first!.isHeld = false
  await chain.follow(first!, second!)
  assert.equal(await rehearsal.received(chain), parseEther('1.75'))
})

const replace = async (id: string, how: 'speed-up' | 'cancel') => {
  const { status, text } = await call(
    rehearsal.user,
    'POST',
    `/dac/v1/transaction/${id}/${how}`,
    {},
  )
  assert.equal(status, 200, text)
}

/** Waits until a replacement of a transfer is in the pool. `step` makes the blocks that its fuel needs. */
const replaced = (id: string, earlier: string, step: () => Promise<unknown>) =>
  waitFor(`a replacement of ${earlier}`, async () => {
    const { hash, sub_status: state, waiting } = await rehearsal.transfer(id)
    if (waiting?.code === 'GAS_TANK') await step()
    return state === 'CONFIRMING' && hash !== earlier
  })

test('ETH: a transfer that waits is sped up, and another one is cancelled', onGeth, async () => {
  const chain = geth as GethChain
  const mine = () => chain.mine()
  const slow = await rehearsal.send('ETH', '0.125', PAYEE)
  const earlier = await rehearsal.inPool(slow, mine)
  await replace(slow, 'speed-up')
  await replaced(slow, earlier, mine)
  const done = await rehearsal.confirmed(slow, mine)
  assert.notEqual(done.hash, earlier)

  const unwanted = await rehearsal.send('ETH', '0.25', PAYEE)
  const payment = await rehearsal.inPool(unwanted, mine)
  await replace(unwanted, 'cancel')
  await replaced(unwanted, payment, mine)
  assert.equal((await rehearsal.ended(unwanted, mine)).status, 'failed')
  assert.equal(await rehearsal.received(chain), parseEther('1.875'))
})

test(
  'ETH: a transfer below the base fee of a spike waits, and pays once sped up',
  onGeth,
  async () => {
    const chain = geth as GethChain
    const earned = await rehearsal.received(chain)
    const waiting = await rehearsal.send('ETH', '0.125', PAYEE)
    const earlier = await rehearsal.inPool(waiting, () => chain.mine())
    const { maxFeePerGas } = await chain.first.call<{ maxFeePerGas: Hex }>(
      'eth_getTransactionByHash',
      earlier,
    )
    // Each empty block lowers the base fee by an eighth, so that twenty of them are not enough.
    while ((await rehearsal.fillBlock(chain)) <= 16n * BigInt(maxFeePerGas));
    await chain.mine()
    const { status, hash } = await rehearsal.transfer(waiting)
    assert.deepEqual([status, hash], ['pending', earlier])
    await replace(waiting, 'speed-up')
    await replaced(waiting, earlier, async () => {
      await new Promise((resolve) => setTimeout(resolve, 1000))
      await chain.mine()
    })
    await rehearsal.confirmed(waiting, () => chain.mine())
    assert.equal((await rehearsal.received(chain)) - earned, parseEther('0.125'))
  },
)

for (const core of cores) {
  const { code, skip, payee } = core
  const mine = () => core.mine()

  test(
    `${code}: a deposit is credited, and a payout survives a node that lost its pool`,
    { skip },
    async () => {
      const address = await rehearsal.newAddress(code)
      await core.mine(1, address)
      await core.mine(99)
      await rehearsal.credited(code, '50', mine)
      const id = await rehearsal.send(code, '1.5', payee)
      const hash = await rehearsal.inPool(id, mine)
      assert.ok((await core.node.call<string[]>('getrawmempool')).includes(hash))
      await core.restart(INDEX, { pool: false })
      await rehearsal.confirmed(id, mine)
      assert.equal(await core.received(), 1.5)
    },
  )

  test(
    `${code}: a payout ends once although the node had no index meanwhile`,
    { skip },
    async () => {
      const id = await rehearsal.send(code, '0.5', payee)
      await rehearsal.inPool(id, mine)
      await core.restart([])
      await core.mine(14)
      await waitFor('the missing index is named', async () => {
        const doctor = command('doctor')
        return new RegExp(`${code} .*txindex`).test(doctor.stdout + doctor.stderr)
      })
      assert.equal((await rehearsal.transfer(id)).status, 'pending')
      await core.restart(INDEX)
      await rehearsal.confirmed(id, mine)
      assert.equal(await core.received(), 2)
    },
  )
}

const command = (name: string) =>
  spawnSync(process.execPath, [join(platform.package, 'bin', 'custody.mjs'), name], {
    encoding: 'utf8',
    env: { ...process.env, ...settings, CUSTODY_HOME: platform.home },
  })

test('the books agree with the chains afterwards', either, () => {
  const audit = command('audit')
  assert.equal(audit.status, 0, audit.stdout + audit.stderr)
})

test('the home, its nodes and its database belong to this chain id', either, async () => {
  assert.equal(await platform.stop(), 0)
  for (const other of ['local', 'mainnet', 'regtest'])
    await assert.rejects(
      platform.start({ ...settings, CUSTODY_NETWORK: other }),
      new RegExp(`belongs to the network "${MODE}"`),
    )
  await platform.start(settings)
})
