import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { addressAt, loadRegistry, paymentUri, type Network } from '@custody/chains'
import * as fc from '../../../../testing/property.ts'
import {
  CustodyClient,
  VerificationError,
  type CertifiedKey,
  type Keys,
  type Trust,
} from '../index.ts'
import { verifyAddress } from './verify-address.ts'
import { Nodes } from '../../testing/certified.ts'
import { TestServer, type Canned } from '../../testing/server.ts'

const API_KEY = '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90'
const pair = generateKeyPairSync('rsa', { modulusLength: 4096 })
const random = (bytes: number) => new Uint8Array(randomBytes(bytes))
const nodes = new Nodes(random)
const registry = loadRegistry('local')
const honest = nodes.keys()
let server: TestServer

before(async () => {
  server = await TestServer.start(API_KEY, pair.publicKey)
})
after(() => server.stop())

const isTagged = ({ family }: { family: string }) => family === 'xrp' || family === 'stellar'
const client = (trust: Trust = nodes.trust()) =>
  new CustodyClient({ baseUrl: server.url, apiKey: API_KEY, privateKey: pair.privateKey, trust })
const json = (value: unknown): Canned => ({ body: JSON.stringify(value) })

function derive(keys: Keys, network: Network, path: number[]): string {
  const key = keys.keys.find(({ curve }) => curve === network.curve) as CertifiedKey
  return addressAt(
    network,
    {
      publicKey: new Uint8Array(Buffer.from(key.public_key, 'hex')),
      chainCode: new Uint8Array(Buffer.from(key.chain_code, 'hex')),
    },
    path,
  )
}

/** Returns a deposit address as an honest platform returns it. */
function shown(
  assetName: string,
  index: number,
  o: { keys?: Keys; sub?: number; tag?: string | null } = {},
) {
  const asset = registry.asset(assetName)!
  const network = registry.networkOf(asset)
  const path = [o.sub ?? 1, network.chain_index, index]
  const address = derive(o.keys ?? honest, network, path)
  return {
    id: 'i',
    asset: assetName,
    address,
    address_tag: o.tag ?? null,
    label: null,
    path,
    payment_uri: paymentUri(network, asset, { address, addressTag: o.tag ?? null }),
    created_at: 'now',
  }
}

async function refused(promise: Promise<unknown>, code: string): Promise<VerificationError> {
  const error = await promise.then(
    () => assert.fail('was taken'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof VerificationError, String(error))
  assert.equal(error.code, code, error.message)
  return error
}

/** Returns an invoice as an honest platform returns it; half of it is paid. */
function invoiceOf(assetName: string, index: number) {
  const { address, address_tag, path } = shown(assetName, index)
  const asset = registry.asset(assetName)!
  const network = registry.networkOf(asset)
  const offer = {
    asset: assetName,
    network: network.code,
    crypto_amount: 1,
    address,
    address_tag,
    path,
  }
  const uri = paymentUri(network, asset, {
    address,
    addressTag: address_tag,
    amount: 10n ** BigInt(asset.decimals) / 2n,
  })
  return {
    inv_id: 'i',
    ...offer,
    paid_amount: 0.5,
    due_amount: 0.5,
    payment_uri: uri,
    assets: [offer, { ...offer, asset: 'ETH', address: null, path: null }],
  }
}

test('verifies the addresses of an invoice and the amount and address of its payment URI', async () => {
  const honestly = invoiceOf('BTC', 7)
  server.script(json(honestly), json(honest))
  assert.equal(
    (await client().invoices.create({ asset: 'BTC', amount: '1' })).address,
    honestly.address,
  )
  const other = invoiceOf('BTC', 8)
  const ask = (invoice: object) => {
    server.script(json(invoice), json(honest))
    return client().invoices.read('i')
  }
  await refused(ask({ ...honestly, address: other.address }), 'ADDRESS')
  await refused(
    ask({ ...honestly, assets: [{ ...honestly.assets[0], address: other.address }] }),
    'ADDRESS',
  )
  await refused(ask({ ...honestly, path: [2, ...honestly.path.slice(1)] }), 'PATH')
  await refused(ask({ ...honestly, payment_uri: other.payment_uri }), 'PAYMENT_URI')
  await refused(ask({ ...honestly, due_amount: 0.25 }), 'PAYMENT_URI')
  server.script(json({ data: [honestly, { ...honestly, address: other.address }] }), json(honest))
  await refused(client().invoices.list(), 'ADDRESS')
})

/**
 * Verifies an address with a client whose first request returns `address` and whose second returns
 * `keys`.
 */
function lie(address: object, keys: unknown = honest, trust?: Trust): Promise<unknown> {
  server.script(json(address), json(keys))
  return client(trust).createAddress('BTC')
}

test('accepts genuine addresses of every asset, and requests the keys once', async () => {
  const custody = client()
  for (const asset of registry.assets) {
    const name = asset.asset_name
    const address = shown(name, isTagged(asset) ? 0 : 7, { tag: isTagged(asset) ? '123' : null })
    server.script(json(address), json(honest))
    assert.deepEqual(await custody.createAddress(name), address)
  }
  server.script(json([shown('BTC', 1), shown('BTC', 2)]))
  assert.equal((await custody.addresses('BTC')).length, 2)
  assert.equal(server.seen.length, 1, 'a verified key is kept')
})

test('refuses a forged address from the server', async () => {
  const theirs = shown('BTC', 3, { keys: nodes.keys() })
  const error = await refused(lie(theirs), 'ADDRESS')
  assert.deepEqual([error.expected, error.actual], [shown('BTC', 3).address, theirs.address])
  server.script(
    json([shown('BTC', 1), { ...shown('BTC', 2), address: theirs.address }]),
    json(honest),
  )
  await refused(client().addresses('BTC'), 'ADDRESS')
})

test('loads the code that derives addresses only to check addresses', () => {
  const hooks = `import { registerHooks } from 'node:module'
    const seen = []
    registerHooks({ load: (url, context, next) => { seen.push(url); return next(url, context) } })
    await import(${JSON.stringify(new URL('../index.ts', import.meta.url).href)})
    console.log(JSON.stringify(seen))`
  const loaded = JSON.parse(
    spawnSync(process.execPath, ['--input-type=module', '-e', hooks], { encoding: 'utf8' }).stdout,
  ) as string[]
  assert.ok(loaded.some((url) => url.endsWith('client/src/client.ts')))
  assert.deepEqual(
    loaded.filter((url) => /chains(?!\/src\/mode\.ts$)|verifier|noble\/curves/.test(url)),
    [],
  )
})

test('without a trust object, addresses are not checked and none is refused', async () => {
  server.script(json(shown('BTC', 3, { keys: nodes.keys() })))
  await new CustodyClient({
    baseUrl: server.url,
    apiKey: API_KEY,
    privateKey: pair.privateKey,
  }).createAddress('BTC')
})

test('refuses the path of another sub-account or chain, and a hardened or missing path', async () => {
  await refused(lie(shown('BTC', 3, { sub: 2 })), 'PATH')
  await refused(lie({ ...shown('BTC', 3, { sub: 2 }), path: [1, 0, 3] }), 'ADDRESS')
  const honestly = shown('BTC', 3)
  const wrong = [
    [1, 2, 3],
    [1, 0],
    [1, 0, 3, 0],
    ['1', '0', '3'],
    [1, 0, -1],
    [1, 0, 0x8000_0000],
    [1, 0, 0x7fff_ffff],
    [1, 0, 1.5],
    '1/0/3',
    null,
    undefined,
  ]
  for (const path of wrong) {
    await refused(lie({ ...honestly, path }), 'PATH')
  }
})

test('refuses another own account on XRP, where deposits of a sub-account differ by tag', async () => {
  server.script(json(shown('XRP', 1, { tag: '7' })), json(honest))
  const error = await refused(client().createAddress('XRP'), 'PATH')
  assert.equal(error.expected, `1/${registry.network('XRP')!.chain_index}/0`)
})

test('refuses an address of another asset', async () => {
  await refused(lie(shown('LTC', 3)), 'ADDRESS')
  await refused(lie({ ...shown('LTC', 3), asset: 'BTC' }), 'PATH')
})

test('refuses a payment URI that pays another address', async () => {
  await refused(
    lie({ ...shown('BTC', 3), payment_uri: shown('BTC', 3, { keys: nodes.keys() }).payment_uri }),
    'PAYMENT_URI',
  )
})

test('refuses a certificate of another workspace', async () => {
  const other: Keys = { network: 'local', keys: [nodes.key('secp256k1', { workspace: 'evil' })] }
  await refused(lie(shown('BTC', 3, { keys: other }), other), 'KEY')
  const renamed: Keys = { network: 'local', keys: [{ ...other.keys[0]!, workspace: 'acme' }] }
  await refused(lie(shown('BTC', 3, { keys: other }), renamed), 'KEY')
})

test('refuses a certificate without valid signatures of two different nodes', async () => {
  const two = nodes.key('secp256k1', {}, [1, 2, 2])
  const strangers = new Nodes(random).key('secp256k1')
  const moved = nodes.key('secp256k1')
  moved.certificates = [
    ...moved.certificates.slice(0, 2),
    { node: 3, signature: moved.certificates[0]!.signature },
  ]
  for (const key of [
    two,
    strangers,
    moved,
    nodes.key('secp256k1', {}, [1, 2]),
    nodes.key('secp256k1', {}, []),
  ]) {
    const keys: Keys = { network: 'local', keys: [key] }
    await refused(lie(shown('BTC', 3, { keys }), keys), 'KEY')
  }
})

test('refuses a key of another network, whatever network the response states', async () => {
  const main: Keys = { network: 'local', keys: [nodes.key('secp256k1', { mode: 'mainnet' })] }
  await refused(lie(shown('BTC', 3, { keys: main }), main), 'KEY')
  await refused(
    lie(shown('BTC', 3, { keys: main }), {
      network: 'local',
      keys: [{ ...main.keys[0]!, mode: 'local' }],
    }),
    'KEY',
  )
  await refused(lie(shown('BTC', 3), honest, nodes.trust({ network: 'mainnet' })), 'KEY')
})

test('refuses a forged chain code, public key, curve or epoch, and a missing key', async () => {
  const [key] = honest.keys as [CertifiedKey]
  const { public_key: foreign } = nodes.key('secp256k1')
  const changes = [
    { chain_code: 'ab'.repeat(32) },
    { public_key: foreign },
    { epoch: 1 },
    { key_id: 's-2' },
    { certificates: null },
  ]
  for (const forged of changes) {
    const keys = { network: 'local', keys: [{ ...key, ...forged }] } as unknown as Keys
    await refused(lie(shown('BTC', 3, { keys }), keys), 'KEY')
  }
  for (const keys of [{ keys: [] }, { keys: [honest.keys[1]] }, {}, [], null, { keys: [null] }]) {
    await refused(lie(shown('BTC', 3), keys), 'KEY')
  }
  await refused(
    lie(shown('BTC', 3), { network: 'local', keys: [{ ...honest.keys[1], curve: 'secp256k1' }] }),
    'KEY',
  )
})

test('refuses a foreign omnibus address and a foreign gas tank', async () => {
  const wallet = (index: number, keys?: Keys) => {
    const { address, path } = shown('ETH', index, keys ? { keys } : {})
    return {
      id: 'w',
      asset: 'ETH',
      status: 'active',
      omnibus_address: address,
      path,
      created_at: 'now',
    }
  }
  const foreign = nodes.keys()
  server.script(json(wallet(0)), json(honest), json([wallet(0)]))
  const custody = client()
  await custody.createWallet('ETH')
  await custody.wallets('ETH')
  server.script(json(wallet(0, foreign)), json([wallet(1)]))
  await refused(custody.createWallet('ETH'), 'ADDRESS')
  await refused(custody.wallets('ETH'), 'PATH')
  const tank = { network: 'ETH', address: shown('ETH', 0, { sub: 0 }).address }
  server.script(
    json([tank, { network: 'POL', address: null }]),
    json([{ network: 'ETH', address: shown('ETH', 0, { sub: 0, keys: foreign }).address }]),
    json([{ network: 'ETH', address: shown('ETH', 0).address }]),
  )
  await custody.gasTanks()
  await refused(custody.gasTanks(), 'ADDRESS')
  await refused(custody.gasTanks(), 'ADDRESS')
})

test('refuses a trust object with a repeated node, a missing or invalid field immediately', () => {
  const good = nodes.trust()
  const [first, second] = good.nodes as [Trust['nodes'][0], Trust['nodes'][0]]
  const rsa = pair.publicKey.export({ type: 'spki', format: 'pem' }) as string
  const bad: unknown[] = [
    { ...good, version: 2 },
    { ...good, network: 'test' },
    { ...good, workspace: '' },
    null,
    { ...good, sub_account_index: 0 },
    { ...good, sub_account_index: 0x8000_0000 },
    { ...good, nodes: [first, second] },
    { ...good, nodes: [first, second, { ...second, node: 3 }] },
    { ...good, nodes: [first, second, { ...good.nodes[2]!, node: 2 }] },
    { ...good, nodes: [first, second, { node: 3, identity: rsa }] },
    { ...good, nodes: [first, second, { node: 3 }] },
  ]
  for (const trust of bad) {
    assert.throws(
      () => client(trust as Trust),
      (error: unknown) => error instanceof VerificationError && error.code === 'TRUST',
    )
  }
})

test('offline: finds an own address at its index, and does not find a foreign address', async () => {
  const check = (
    asset: string,
    address: string,
    options: { path?: number[]; indexMax?: number } = {},
  ) => verifyAddress(nodes.trust(), honest, asset, address, { indexMax: 20, ...options })
  assert.deepEqual((await check('ETH', shown('ETH', 12).address.toLowerCase())).path, [
    1,
    registry.network('ETH')!.chain_index,
    12,
  ])
  assert.deepEqual(
    (await check('BTC', shown('BTC', 20).address.toUpperCase())).certified_by,
    [1, 2, 3],
  )
  await refused(check('BTC', shown('BTC', 21).address), 'ADDRESS')
  assert.deepEqual(
    (await check('BTC', shown('BTC', 21).address, { path: [1, 0, 21] })).path,
    [1, 0, 21],
  )
  await refused(check('BTC', shown('BTC', 21).address, { path: [1, 0, 20] }), 'ADDRESS')
  await refused(check('BTC', shown('BTC', 21, { sub: 2 }).address, { path: [2, 0, 21] }), 'PATH')
  await refused(check('BTC', 'bcrt1qqqq'), 'ADDRESS')
  await refused(check('NONE', 'x'), 'ADDRESS')
})

test('property: on every network the client derives the same addresses as the platform', async () => {
  for (const mode of ['local', 'mainnet'] as const) {
    const bound = loadRegistry(mode)
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...bound.assets),
        fc.integer({ min: 1, max: 0x7fff_ffff }),
        fc.integer({ min: 0, max: 0x7fff_fffe }),
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        async (asset, sub, index, bytes) => {
          let used = 0
          const own = new Nodes(
            (length) =>
              new Uint8Array(
                createHash('sha256')
                  .update(bytes)
                  .update(String(used++))
                  .digest()
                  .subarray(0, length),
              ),
            mode,
          )
          const network = bound.networkOf(asset)
          const keys: Keys = { network: mode, keys: [own.key(network.curve)] }
          const path = [sub, network.chain_index, isTagged(asset) ? 0 : index]
          const address = derive(keys, network, path)
          const proof = await verifyAddress(
            own.trust({ sub_account_index: sub }),
            keys,
            asset.asset_name,
            address,
            { path, indexMax: 0 },
          )
          assert.deepEqual([proof.path, proof.certified_by], [path, [1, 2, 3]])
          await refused(
            verifyAddress(
              own.trust({ sub_account_index: sub }),
              { network: mode, keys: [own.key(network.curve)] },
              asset.asset_name,
              address,
              { path, indexMax: 0 },
            ),
            'ADDRESS',
          )
        },
      ),
      { numRuns: 120 },
    )
  }
})
