// @blockfrost/blockfrost-js, unmodified, with the local Cardano network; every response is
//   validated with Blockfrost's own schema.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { after, before, test } from 'node:test'
import { BlockFrostAPI, BlockfrostServerError } from '@blockfrost/blockfrost-js'
import { Credential, EnterpriseAddress, PrivateKey } from '@emurgo/cardano-serialization-lib-nodejs'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

const home = tempHome()
let devnet: Running
let api: BlockFrostAPI
const addressOf = (seed: number) =>
  EnterpriseAddress.new(
    0,
    Credential.from_keyhash(
      PrivateKey.from_normal_bytes(Buffer.alloc(32, seed)).to_public().hash(),
    ),
  )
    .to_address()
    .to_bech32()
const ALICE = addressOf(1)
const fund = (amount: string, more: Record<string, unknown> = {}) =>
  devnet.control<{ hash: string }>({
    command: 'fund',
    asset: 'ADA',
    address: ALICE,
    amount,
    ...more,
  })

before(async () => {
  devnet = await startDevnet(home)
  api = new BlockFrostAPI({ customBackend: `${devnet.url}/ada` })
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

test('the root endpoint identifies Blockfrost, and health and clock endpoints respond', async () => {
  assert.equal((await api.root()).url, 'https://blockfrost.io/')
  assert.equal((await api.health()).is_healthy, true)
  assert.ok(Math.abs((await api.healthClock()).server_time - Date.now()) < 60_000)
})

test('an address is unknown until it is paid, then returned with its balance of each token', async () => {
  await assert.rejects(
    api.addresses(ALICE),
    (error) => error instanceof BlockfrostServerError && error.status_code === 404,
  )
  await assert.rejects(
    api.addresses('addr_nonsense'),
    (error) => error instanceof BlockfrostServerError && error.status_code === 404,
  )
  await fund('5')
  await fund('2.5', { tokens: { GOLD: '7' } })
  const shown = await api.addresses(ALICE)
  assert.deepEqual(
    [shown.address, shown.type, shown.script, shown.stake_address],
    [ALICE, 'shelley', false, null],
  )
  assert.equal(shown.amount[0]?.quantity, '7500000')
  assert.deepEqual(
    shown.amount.map(({ quantity }) => quantity),
    ['7500000', '7'],
  )
  const total = await api.addressesTotal(ALICE)
  assert.deepEqual(
    [total.tx_count, total.received_sum[0], total.sent_sum[0]],
    [2, { unit: 'lovelace', quantity: '7500000' }, { unit: 'lovelace', quantity: '0' }],
  )
})

test('returns the transactions of an address in both orders, by page and by range', async () => {
  const { hash } = await fund('1')
  const all = await api.addressesTransactions(ALICE)
  assert.equal(all.length, 3)
  assert.equal(all.at(-1)?.tx_hash, hash)
  assert.deepEqual(await api.addressesTransactions(ALICE, { order: 'desc', count: 1 }), [all[2]])
  assert.deepEqual(await api.addressesTransactions(ALICE, { count: 2, page: 2 }), [all[2]])
  assert.deepEqual(
    await api.addressesTransactions(ALICE, undefined, {
      from: String(all[1]?.block_height),
      to: `${all[1]?.block_height}:0`,
    }),
    [all[1]],
  )
  assert.equal((await api.txs(hash)).block_height, all[2]?.block_height)
  assert.equal((await api.addressesUtxos(ALICE)).length, 3)
  assert.equal((await api.blocksLatest()).height! >= all[2]!.block_height, true)
})

test('responses have every field that Blockfrost requires', async () => {
  const file = fileURLToPath(
    import.meta.resolve('@blockfrost/openapi').replace(/lib\/index\.js$/, 'openapi.yaml'),
  )
  const lines = readFileSync(file, 'utf8').split('\n')
  /** Returns the names under `required:` of a component, which the document indents in this way. */
  const required = (component: string): string[] => {
    const start = lines.indexOf(`    ${component}:`)
    const at = lines.indexOf('      required:', start)
    const names = lines.slice(at + 1)
    return names
      .slice(
        0,
        names.findIndex((line) => !line.startsWith('        - ')),
      )
      .map((line) => line.slice(10))
  }
  for (const [component, answer] of [
    ['address_content', await api.addresses(ALICE)],
    ['address_content_total', await api.addressesTotal(ALICE)],
    ['block_content', await api.blocksLatest()],
    ['genesis_content', await api.genesis()],
  ] as const) {
    const names = required(component)
    assert.ok(names.length > 3, component)
    for (const name of names) assert.ok(name in answer, `${component}: ${name}`)
  }
})
