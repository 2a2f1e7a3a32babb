// A node signs a statement of reserves only for addresses that it derived itself, with a separate
// tag, and signs nothing else with that tag.
import assert from 'node:assert/strict'
import { createPublicKey, randomUUID, verify } from 'node:crypto'
import { after, before, test } from 'node:test'
import { canonicalJson } from '@custody/request-auth'
import { sha256hex } from '../canonical.ts'
import {
  BTC,
  ETH,
  SignerCluster,
  type Answer,
  type Workspace,
} from '../../testing/signer-cluster.ts'

let cluster: SignerCluster
let workspace: Workspace

before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
  workspace = await cluster.workspace()
})
after(async () => {
  await cluster.stop()
})

const HASH = 'ab'.repeat(32)

/** A statement of two addresses. */
function stated() {
  const id = randomUUID()
  const at = (network: typeof BTC, path: number[], asset: string, amount: string) => ({
    workspace: workspace.name,
    network: network.code,
    address: workspace.address(network, path),
    path,
    held: [{ asset, form: 'balance', amount }],
  })
  const holdings = {
    version: 1,
    id,
    keys: [],
    addresses: [
      at(BTC, [1, BTC.chain_index, 3], 'BTC', '500'),
      at(ETH, [0, ETH.chain_index, 0], 'ETH', '7'),
    ],
  }
  const entry = (asset: string, network: string, held: string) => ({
    asset,
    network,
    decimals: 8,
    held,
    operating: '0',
    owed: '9',
    overdrawn: '0',
    arriving: '0',
    leaving: '0',
    leaves: 1,
    depth: 1,
    top: HASH,
    root: HASH,
  })
  const block = { height: 1, hash: 'aa' }
  const statement = {
    version: 1,
    kind: 'proof-of-reserves',
    id,
    mode: 'local',
    time: new Date().toISOString(),
    networks: [
      { network: 'BTC', from: block, to: block },
      { network: 'ETH', from: block, to: block },
    ],
    assets: [entry('BTC', 'BTC', '500'), entry('ETH', 'ETH', '7')],
    holdings: { addresses: 2, sha256: '' },
  }
  return { statement, holdings }
}
type Stated = ReturnType<typeof stated>

/** Binds the list to the statement and requests the signature. */
function ask(node: number, { statement, holdings }: Stated, bind = true): Promise<Answer> {
  const list = canonicalJson(holdings)
  const bound = bind
    ? { ...statement, holdings: { addresses: holdings.addresses.length, sha256: sha256hex(list) } }
    : statement
  return cluster.post(node, '/attest', { statement: canonicalJson(bound), holdings: list })
}

test('each node signs only addresses that it derived itself, and stores nothing', async () => {
  const made = stated()
  const list = canonicalJson(made.holdings)
  const text = canonicalJson({
    ...made.statement,
    holdings: { addresses: 2, sha256: sha256hex(list) },
  })
  for (const { node, identity } of cluster.peers.nodes) {
    const height = async () =>
      ((await cluster.get(node, '/status')).body.record as { height: number }).height
    const before = await height()
    const { status, body } = await cluster.post(node, '/attest', {
      statement: text,
      holdings: list,
    })
    assert.deepEqual([status, body.statement], [200, sha256hex(text)], JSON.stringify(body))
    const signed = Buffer.from(`custody/reserves/v1\n{"statement":"${sha256hex(text)}"}`)
    assert.ok(verify(null, signed, createPublicKey(identity), Buffer.from(body.signature, 'hex')))
    assert.equal(await height(), before)
  }
})

test('refuses a wrong path, unknown or repeated addresses, and another sum, time or network', async () => {
  const refusals: Record<string, [string, (made: Stated) => unknown]> = {
    'another path': [
      'FOREIGN_PATH',
      ({ holdings }) => {
        holdings.addresses[0]!.path = [1, BTC.chain_index, 4]
      },
    ],
    'a foreign address': [
      'FOREIGN_PATH',
      ({ holdings }) => {
        holdings.addresses[0]!.address = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
      },
    ],
    'another workspace': [
      'KEY_NOT_READY',
      ({ holdings }) => {
        holdings.addresses[0]!.workspace = 'nobody'
      },
    ],
    'a path of another chain': [
      'NETWORK_MISMATCH',
      ({ holdings }) => {
        holdings.addresses[0]!.path = [1, ETH.chain_index, 3]
      },
    ],
    'an address twice': [
      'BAD_ORDER',
      ({ holdings, statement }) => {
        holdings.addresses.push(holdings.addresses[0]!)
        statement.assets[0]!.held = '1000'
      },
    ],
    'a token that stands elsewhere': [
      'ASSET_MISMATCH',
      ({ holdings }) => {
        holdings.addresses[0]!.held[0]!.asset = 'ETH'
      },
    ],
    'more than is listed': [
      'AMOUNT_MISMATCH',
      ({ statement }) => {
        statement.assets[0]!.held = '501'
      },
    ],
    'an asset that is not stated': [
      'AMOUNT_MISMATCH',
      ({ statement }) => {
        statement.assets.pop()
      },
    ],
    'an hour ago': [
      'TOO_OLD',
      ({ statement }) => {
        statement.time = new Date(Date.now() - 3_600_000).toISOString()
      },
    ],
    'in an hour': [
      'TOO_OLD',
      ({ statement }) => {
        statement.time = new Date(Date.now() + 3_600_000).toISOString()
      },
    ],
    'another mode': [
      'NETWORK_MISMATCH',
      ({ statement }) => {
        statement.mode = 'mainnet'
      },
    ],
    'another kind': [
      'BAD_ORDER',
      ({ statement }) => {
        statement.kind = 'order'
      },
    ],
    'a field more': [
      'BAD_ORDER',
      ({ statement }) => {
        Object.assign(statement, { note: 'pay me' })
      },
    ],
    'a negative amount': [
      'BAD_ORDER',
      ({ statement }) => {
        statement.assets[0]!.owed = '-1'
      },
    ],
    'an amount of 2^128': [
      'BAD_ORDER',
      ({ statement }) => {
        statement.assets[0]!.owed = String(1n << 128n)
      },
    ],
    'another id': [
      'BAD_ORDER',
      ({ holdings }) => {
        holdings.id = randomUUID()
      },
    ],
  }
  for (const [name, [code, change]] of Object.entries(refusals)) {
    const made = stated()
    change(made)
    const { status, body } = await ask(1, made)
    assert.deepEqual(
      [status >= 400 && status < 504, body.error],
      [true, code],
      `${name}: ${JSON.stringify(body)}`,
    )
  }
  assert.equal((await ask(1, stated(), false)).status, 400, 'a list that is not bound')
  // Each value has exactly one encoding.
  const made = stated()
  const list = canonicalJson(made.holdings)
  const loose = JSON.stringify(
    { ...made.statement, holdings: { addresses: 2, sha256: sha256hex(list) } },
    null,
    1,
  )
  assert.equal(
    (await cluster.post(1, '/attest', { statement: loose, holdings: list })).body.error,
    'BAD_ORDER',
  )
  const long = { statement: 'x'.repeat(1024 * 1024 + 1), holdings: '' }
  assert.equal((await cluster.post(1, '/attest', long)).body.error, 'BAD_ORDER')
})
