// Tests of the client with pinned signer nodes, against a real platform and its real nodes.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { CustodyClient, VerificationError, type Trust } from '@custody/client'
import { PRIVATE_KEY, TestPlatform, type User } from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform()
let user: User
let trust: Trust

before(async () => {
  await platform.start()
  user = await platform.user('acme')
  const peers = JSON.parse(
    readFileSync(join(platform.home, 'signers', 'platform', 'peers.json'), 'utf8'),
  ) as { nodes: { node: number; identity: string }[] }
  trust = {
    version: 1,
    network: 'local',
    workspace: 'acme',
    sub_account: 'main',
    sub_account_index: 1,
    nodes: peers.nodes.map(({ node, identity }) => ({ node, identity })),
  }
})
after(() => platform.remove())

const client = (more: Partial<Trust> = {}, of: User = user) =>
  new CustodyClient({
    baseUrl: platform.base,
    apiKey: of.apiKey,
    privateKey: PRIVATE_KEY,
    trust: { ...trust, ...more },
  })

test('the nodes’ certificates cover the wallets, addresses and tanks of every family', async () => {
  const custody = client()
  for (const asset of ['BTC', 'ETH', 'USDT_ETH', 'TRX', 'XRP', 'XLM', 'SOL', 'ADA']) {
    const wallet = await custody.createWallet(asset)
    const first = await custody.createAddress(asset)
    const second = await custody.createAddress(asset)
    assert.equal(first.address, wallet.omnibus_address)
    const tagged = asset === 'XRP' || asset === 'XLM'
    assert.deepEqual(
      [wallet.path.length, wallet.path[0], first.path, second.path[2] === 0],
      [3, 1, wallet.path, tagged],
      asset,
    )
    assert.deepEqual(
      (await custody.addresses(asset)).map(({ address, path }) => [address, path]),
      [
        [first.address, first.path],
        [second.address, second.path],
      ],
    )
    assert.deepEqual(
      (await custody.wallets(asset)).map(({ omnibus_address: address, path }) => [address, path]),
      [[wallet.omnibus_address, wallet.path]],
    )
  }
  assert.ok((await custody.gasTanks()).some(({ address }) => address !== null))
})

test('a read-only key lists the keys of its own workspace, with three certificates each', async () => {
  const reader = await platform.user('acme', { role: 'read-only' })
  const { network, keys } = await client({}, reader).keys()
  assert.equal(network, 'local')
  assert.deepEqual(
    keys.map(({ workspace, curve, certificates }) => [
      workspace,
      curve,
      certificates.map(({ node }) => node),
    ]),
    [
      ['acme', 'secp256k1', [1, 2, 3]],
      ['acme', 'ed25519', [1, 2, 3]],
    ],
  )
  const stranger = await platform.user('other')
  assert.deepEqual((await client({}, stranger).keys()).keys, [])
})

test('the client refuses keys of another sub-account or workspace than in its trust object', async () => {
  const refused = (code: string) => (error: unknown) =>
    error instanceof VerificationError && error.code === code
  const other = await platform.user('acme', { subAccount: 'second' })
  await assert.rejects(client({}, other).createWallet('BTC'), refused('PATH'))
  assert.deepEqual(
    (await client({ sub_account: 'second', sub_account_index: 2 }, other).createAddress('BTC'))
      .path,
    [2, 0, 0],
  )
  await assert.rejects(client({ workspace: 'evil' }).addresses('BTC'), refused('KEY'))
  await assert.rejects(client({ network: 'mainnet' }).addresses('BTC'), refused('KEY'))
})

test('verify-address confirms an address with the files that the README saves', async () => {
  const keys = join(platform.home, 'keys.json')
  const pinned = join(platform.home, 'trust.json')
  const key = join(platform.home, 'key.pem')
  writeFileSync(key, PRIVATE_KEY)
  writeFileSync(pinned, JSON.stringify(trust))
  const saved = await platform.cli(
    'request',
    'GET',
    '/dac/v1/keys',
    '--api-key',
    user.apiKey,
    '--key',
    key,
    '--json',
  )
  assert.equal(saved.status, 0, saved.stderr)
  writeFileSync(keys, saved.stdout)
  const { address } = await client().createAddress('ETH')
  const result = await platform.cli(
    'verify-address',
    'ETH',
    address,
    '--keys',
    keys,
    '--trust',
    pinned,
  )
  assert.match(
    result.stdout,
    /^0x\w{40} is the ETH address 1\/60\/3 of acme \/ main; its key is certified by signer nodes 1, 2, 3\n$/,
    result.stderr,
  )
})

test('two nodes prove that a failed transfer is void, but only for the nonce of its request', async () => {
  const held = await platform.user('poor')
  const pinned = { workspace: 'poor' }
  const custody = client(pinned, held)
  await custody.createWallet('USDT_ETH')
  const { address } = await custody.createAddress('USDT_ETH')
  await platform.fund('USDT_ETH', address, '5')
  await waitFor('the deposit', async () => (await custody.wallets('USDT_ETH'))[0]?.balance === '5')
  const requests: { nonce: string; id: string }[] = []
  // The gas tank is empty, so the transaction waits unsigned.
  const { id } = await custody.createTransaction(
    {
      asset: 'USDT_ETH',
      amount: '1',
      destination_address: '0x00000000000000000000000000000000000000AA',
    },
    { onSigned: (request) => requests.push(request) },
  )
  assert.equal(requests[0]?.id, id)
  await custody.cancel(id)
  const failed = await custody.waitForTransaction(id, { intervalMs: 200, timeoutMs: 30_000 })
  assert.deepEqual(
    [failed.status, failed.failure_proof?.proven, (failed.voids?.length ?? 0) >= 2],
    ['failed', true, true],
    JSON.stringify(failed),
  )
  const { nonce } = requests[0] as { nonce: string }
  const later = client(pinned, held)
  const listed = (await later.transactions({ asset: 'USDT_ETH', type: 'Withdraw' })).data[0]!
  assert.deepEqual(
    [listed.id, listed.failure_proof?.proven],
    [id, false],
    'a new client does not know the request',
  )
  assert.equal((await later.verifyFailed(listed, { nonce })).proven, true)
  assert.equal((await later.verifyFailed(listed, { nonce: `${nonce}x` })).proven, false)
  const [first] = listed.voids!
  assert.equal(
    (await later.verifyFailed({ ...listed, voids: [first!, first!] }, { nonce })).proven,
    false,
  )
  assert.deepEqual(
    (await custody.transactions({ asset: 'USDT_ETH', type: 'Deposit' })).data.map(
      (each) => each.voids,
    ),
    [[]],
  )
})
