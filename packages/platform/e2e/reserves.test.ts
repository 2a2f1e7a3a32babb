// Tests of the reserves of a real platform on local chains: published, signed by its real nodes,
// and verified without the platform.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  CustodyClient,
  CustodyError,
  VerificationError,
  type ReservesStatement,
  type Trust,
} from '@custody/client'
import {
  verifyReserves,
  type Holdings,
  type ReservesProof,
  type Statement,
} from '@custody/client/verify-reserves'
import { canonicalJson } from '@custody/request-auth'
import { PAGE_WAIT_MS, startBrowser } from '../../../testing/browser.ts'
import { PRIVATE_KEY, TestPlatform, type User } from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform()
let [acme, other, second] = [] as unknown as [User, User, User]
let nodes: Trust['nodes']
interface Published {
  id: string
  hash: string
  short: string[]
  signed_by: number[]
  assets: Statement['assets']
}
/** The first statement, which contains deposits of two workspaces. */
let firstStatement: Published

const trustOf = (workspace: string, sub_account = 'main', sub_account_index = 1): Trust => ({
  version: 1,
  network: 'local',
  workspace,
  sub_account,
  sub_account_index,
  nodes,
})
const clientOf = (user: User, trust: Trust) =>
  new CustodyClient({ baseUrl: platform.base, apiKey: user.apiKey, privateKey: PRIVATE_KEY, trust })
const file = (name: string, content: unknown): string => {
  const path = join(platform.home, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

before(async () => {
  await platform.start({ CUSTODY_RESERVES_PUBLIC: 'all' })
  const peers = JSON.parse(
    readFileSync(join(platform.home, 'signers', 'platform', 'peers.json'), 'utf8'),
  ) as { nodes: Trust['nodes'] }
  nodes = peers.nodes.map(({ node, identity }) => ({ node, identity }))
  acme = await platform.user('acme')
  second = await platform.user('acme', { subAccount: 'second' })
  other = await platform.user('other')
  const [first, apart, theirs] = [trustOf('acme'), trustOf('acme', 'second', 2), trustOf('other')]
  await Promise.all([
    deposit(acme, first, 'BTC', '1.5'),
    deposit(acme, first, 'ETH', '2'),
    deposit(acme, first, 'TRX', '70'),
    deposit(second, apart, 'BTC', '0.25'),
    deposit(second, apart, 'SOL', '3'),
    deposit(other, theirs, 'BTC', '4'),
    deposit(other, theirs, 'ETH', '0.5'),
  ])
  const { status, stdout, stderr } = await platform.cli('reserves', 'publish', '--json')
  assert.equal(status, 0, `${stderr}${stdout}`)
  firstStatement = JSON.parse(stdout) as Published
})
after(() => platform.remove())

async function deposit(user: User, trust: Trust, asset: string, amount: string): Promise<void> {
  const custody = clientOf(user, trust)
  await custody.createWallet(asset)
  const { address } = await custody.createAddress(asset)
  await platform.fund(asset, address, amount)
  // Solana's minimum balance of an account cannot be spent, but counts as a liability.
  await waitFor(
    `${amount} ${asset}`,
    async () => Number((await custody.wallets(asset))[0]?.balance) > Number(amount) - 0.01,
  )
}

test('a statement signed by three nodes counts deposits of two workspaces as held and owed', () => {
  assert.deepEqual([firstStatement.signed_by, firstStatement.short], [[1, 2, 3], []])
  const of = (asset: string) => firstStatement.assets.find((each) => each.asset === asset)!
  assert.deepEqual(
    ['BTC', 'ETH', 'TRX', 'SOL'].map((asset) => [of(asset).owed, of(asset).leaves]),
    [
      ['575000000', 3],
      ['2500000000000000000', 2],
      ['70000000', 1],
      ['3000000000', 1],
    ],
  )
  assert.deepEqual([of('BTC').held, of('BTC').operating], ['575000000', '0'])
  for (const { asset, held, operating, owed } of firstStatement.assets)
    assert.equal(BigInt(held) - BigInt(operating), BigInt(owed), asset)
  // The balance of the gas tank that pays fees is an asset, and does not belong to any caller.
  assert.ok(BigInt(of('ETH').operating) > 0n)
})

test('each caller verifies their own proof offline, and cannot read the proofs of others', async () => {
  const statement = file('statement.json', '')
  const shown = await platform.cli(
    'reserves',
    'show',
    firstStatement.id,
    '--holdings',
    join(platform.home, 'holdings.json'),
  )
  assert.equal(shown.status, 0, shown.stderr)
  assert.match(shown.stdout, /^BTC: held 5\.75 \(operating 0\), owed 5\.75, 100\.00 %$/m)
  const expected: [User, Trust, Record<string, string>][] = [
    [acme, trustOf('acme'), { BTC: '150000000', ETH: '2000000000000000000', TRX: '70000000' }],
    [second, trustOf('acme', 'second', 2), { BTC: '25000000', SOL: '3000000000' }],
    [other, trustOf('other'), { BTC: '400000000', ETH: '500000000000000000' }],
  ]
  for (const [at, [user, trust, balances]] of expected.entries()) {
    const custody = clientOf(user, trust)
    const verified = await custody.reserves.verify()
    assert.deepEqual(
      Object.fromEntries(verified.proven.map(({ asset, balance }) => [asset, balance])),
      balances,
    )
    assert.deepEqual(
      [verified.signed_by, verified.hash, verified.short],
      [[1, 2, 3], firstStatement.hash, []],
    )
    writeFileSync(statement, JSON.stringify((await custody.reserves.list()).data[0]))
    const proof = await custody.reserves.proof(firstStatement.id)
    const offline = await platform.cli(
      'verify-reserves',
      file(`proof-${at}.json`, proof),
      '--statement',
      statement,
      '--trust',
      file(`trust-${at}.json`, trust),
      '--holdings',
      join(platform.home, 'holdings.json'),
    )
    assert.equal(offline.status, 0, `${offline.stderr}${offline.stdout}`)
    assert.match(
      offline.stdout,
      /signed by signer nodes 1, 2, 3[\s\S]*addresses are derived from certified keys/,
    )
  }
  // A proof contains the name of the caller who requests it.
  const mine = await clientOf(acme, trustOf('acme')).reserves.proof(firstStatement.id)
  const theirs = await clientOf(other, trustOf('other')).reserves.proof(firstStatement.id)
  assert.deepEqual([mine.workspace, theirs.workspace], ['acme', 'other'])
  assert.equal(JSON.stringify(theirs).includes(mine.secret), false)
  const published = JSON.parse(readFileSync(statement, 'utf8')) as ReservesStatement
  await assert.rejects(
    verifyReserves({ published, proof: mine, trust: trustOf('other') }),
    VerificationError,
  )
  await assert.rejects(
    verifyReserves({ published, proof: { ...mine, workspace: 'other' }, trust: trustOf('other') }),
    VerificationError,
  )
  await assert.rejects(
    clientOf(acme, trustOf('acme')).reserves.proof('7c9e6679-7425-40de-944b-e07fc1f90ae7'),
    (error) => error instanceof CustodyError && error.status === 404,
  )
})

test('refuses a tampered balance, statement, address list or signature', async () => {
  const read = <T>(name: string) => JSON.parse(readFileSync(join(platform.home, name), 'utf8')) as T
  const [published, proof] = [
    read<ReservesStatement>('statement.json'),
    read<ReservesProof>('proof-0.json'),
  ]
  const [trust, holdings] = [
    trustOf('acme'),
    readFileSync(join(platform.home, 'holdings.json'), 'utf8'),
  ]
  const refused = async (change: Partial<Parameters<typeof verifyReserves>[0]>, message: RegExp) =>
    assert.rejects(verifyReserves({ published, proof, trust, holdings, ...change }), message)
  await verifyReserves({ published, proof, trust, holdings })
  const cheated = {
    ...proof,
    leaves: proof.leaves.map((leaf) => ({ ...leaf, balance: String(BigInt(leaf.balance) + 1n) })),
  }
  await refused(
    { proof: cheated },
    /than the liabilities in the statement|included in the liabilities/,
  )
  const wrong = await platform.cli(
    'verify-reserves',
    file('cheated.json', cheated),
    '--statement',
    join(platform.home, 'statement.json'),
    '--trust',
    file('trust.json', trust),
  )
  assert.deepEqual([wrong.status, wrong.stdout.trim().split('\n').length], [1, 1])
  const changed = canonicalJson({
    ...(JSON.parse(published.statement) as Statement),
    assets: (JSON.parse(published.statement) as Statement).assets.map((each) => ({
      ...each,
      held: `${each.held}0`,
    })),
  })
  await refused({ published: { ...published, statement: changed } }, /signed by 0 of/)
  await refused(
    { published: { ...published, signatures: published.signatures.slice(0, 1) } },
    /signed by 1 of/,
  )
  await refused(
    {
      published: { ...published, signatures: [published.signatures[0]!, published.signatures[0]!] },
    },
    /signed by 1 of/,
  )
  // A different list does not match the signed hash. A list whose hash was signed by an attacker
  // must still match the derived addresses.
  const list = JSON.parse(holdings) as Holdings
  const foreign = canonicalJson({
    ...list,
    addresses: list.addresses.map((each, at) =>
      at === 0 ? { ...each, path: [each.path[0], each.path[1], 4711] } : each,
    ),
  })
  await refused({ holdings: foreign }, /not the one that the statement commits to/)
  const { createHash } = await import('node:crypto')
  const rebound = canonicalJson({
    ...(JSON.parse(published.statement) as Statement),
    holdings: {
      addresses: list.addresses.length,
      sha256: createHash('sha256').update(foreign).digest('hex'),
    },
  })
  const { verifyHoldings } = await import('../../client/src/reserves/holdings.ts')
  const { readTrust } = await import('../../client/src/trust/trust.ts')
  await assert.rejects(
    verifyHoldings(JSON.parse(rebound) as Statement, foreign, readTrust(trust)),
    /is not at .* certified key/,
  )
  const short = canonicalJson({ ...list, addresses: list.addresses.slice(1) })
  await refused({ holdings: short }, /not the one that the statement commits to/)
})

test('statements are public if the operator allows it, and existing ones never change', async () => {
  const get = async (path: string) => fetch(`${platform.base}${path}`)
  const index = (await (await get('/reserves/index.json')).json()) as {
    statements: { id: string; hash: string }[]
  }
  assert.deepEqual(
    index.statements.map(({ id, hash }) => [id, hash]),
    [[firstStatement.id, firstStatement.hash]],
  )
  const open = (await (
    await get(`/reserves/${firstStatement.id}.json`)
  ).json()) as ReservesStatement
  const list = await (await get(`/reserves/${firstStatement.id}/holdings.json`)).text()
  const verified = await verifyReserves({
    published: open,
    trust: trustOf('another'),
    holdings: list,
  })
  assert.deepEqual(
    [verified.hash, verified.proven, (verified.addresses ?? 0) > 5],
    [firstStatement.hash, [], true],
  )
  assert.equal(JSON.stringify(open).includes('acme'), false, 'a statement names nobody')
  assert.equal((await get('/reserves/7c9e6679-7425-40de-944b-e07fc1f90ae7.json')).status, 404)
  assert.equal((await get(`/reserves/${firstStatement.id}/proof`)).status, 404)
  assert.equal((await get('/dac/v1/reserves')).status, 401)
  for (const attempt of [
    'update reserve_snapshots set hash = hash',
    'delete from reserve_leaves',
    'update reserve_leaves set balance = 0',
  ]) {
    await assert.rejects(platform.database.query(attempt), /only added/)
  }
})

test('the page verifies a proof in the browser without requests, and reports a false proof', async () => {
  const browser = await startBrowser()
  try {
    const page = await (
      await browser.newContext({ viewport: { width: 1000, height: 900 } })
    ).newPage()
    page.setDefaultTimeout(PAGE_WAIT_MS)
    const [paths, thrown]: [string[], string[]] = [[], []]
    page.on('request', (request) => paths.push(request.url()))
    page.on('pageerror', (error) => thrown.push(error.message))
    await page.addInitScript({
      content: `window.broken = []
      addEventListener('securitypolicyviolation', (event) => broken.push(event.violatedDirective + ' ' + event.blockedURI))`,
    })
    await page.goto(`${platform.base}/reserves`)
    await page.getByText(firstStatement.hash).waitFor()
    assert.match(await page.locator('#assets').innerText(), /BTC\s+5\.75\s+0\s+5\.75\s+100\.00 %/)
    const proof = readFileSync(join(platform.home, 'proof-0.json'), 'utf8')
    const verdict = async (text: string, trust: string) => {
      await page.locator('#proof').fill(text)
      await page.locator('#trust').fill(trust)
      await page.locator('#verdict').evaluate((element) => {
        element.hidden = true
      })
      await page.getByRole('button', { name: 'Check' }).click()
      await page.locator('#verdict:visible').waitFor()
      return page.locator('#verdict').innerText()
    }
    assert.match(
      await verdict(proof, ''),
      /includes your balance of 1\.5 BTC, 2 ETH, 70 TRX\.[^]*no trust file/,
    )
    assert.match(
      await verdict(proof, JSON.stringify(trustOf('acme'))),
      /includes your balance of 1\.5 BTC[^]*Signed by signer nodes 1, 2, 3\./,
    )
    const picture = process.env['RESERVES_PICTURE']
    if (picture) await page.screenshot({ path: picture, fullPage: true })
    assert.match(await verdict(proof.replace('150000000', '160000000'), ''), /verification failed/)
    assert.match(
      await verdict(proof, JSON.stringify(trustOf('other'))),
      /verification failed: the proof belongs to another sub-account/,
    )
    assert.match(await verdict('{', ''), /verification failed: The proof is not JSON/)
    assert.deepEqual([thrown, await page.evaluate('broken')], [[], []])
    assert.deepEqual(
      paths.filter((url) => !url.startsWith(platform.base)),
      [],
    )
    // The entered text is not sent anywhere.
    assert.deepEqual(
      paths
        .map((url) => new URL(url).pathname)
        .filter((path) => !path.startsWith('/console/assets/')),
      ['/reserves', '/reserves/index.json', `/reserves/${firstStatement.id}.json`],
    )
  } finally {
    await browser.close()
  }
})

test('two nodes are enough to publish a statement, and one node is not', async () => {
  const two = await platform.nodesDown([3], () => platform.cli('reserves', 'publish', '--json'))
  assert.deepEqual(
    [two.status, (JSON.parse(two.stdout) as Published).signed_by],
    [0, [1, 2]],
    two.stderr,
  )
  const one = await platform.nodesDown([2, 3], () => platform.cli('reserves', 'publish'))
  assert.deepEqual([one.status, one.stdout], [1, ''])
  assert.match(one.stderr, /nothing was published: 2 nodes must sign it; signer [23]: /)
  const row = await platform.database.one<{ count: string }>(
    'select count(*)::text from reserve_snapshots',
  )
  assert.equal(row?.count, '2')
})

test('a statement reports a deficit if more is owed than held', async () => {
  // Simulates a payment with stolen keys: the ledger contains coins that the chain does not have.
  await platform.database.query(
    `update ledger_accounts set balance = balance + 900000000
      where id = (select a.id from ledger_accounts a
      join wallets w on w.id = a.wallet_id join workspaces k on k.id = w.workspace_id
      where k.name = 'other' and a.asset = 'BTC' and a.kind = 'available')`,
  )
  const said = await platform.cli('reserves', 'publish')
  assert.equal(said.status, 1, said.stderr)
  assert.match(said.stdout, /^SHORT BTC: held 5\.75 \(operating 0\), owed 14\.75, 38\.98 %$/m)
  assert.match(said.stdout, /LIABILITIES EXCEED RESERVES in BTC/)
  const verified = await clientOf(other, trustOf('other')).reserves.verify()
  assert.deepEqual([verified.short, verified.signed_by], [['BTC'], [1, 2, 3]])
  assert.equal(verified.proven.find(({ asset }) => asset === 'BTC')?.balance, '1300000000')
  assert.match(
    (await platform.cli('reserves', 'list')).stdout,
    /liabilities exceed reserves in BTC\n.*\n.*\n$/,
  )
  await platform.database.query(
    `update ledger_accounts set balance = balance - 900000000
      where id = (select a.id from ledger_accounts a
      join wallets w on w.id = a.wallet_id join workspaces k on k.id = w.workspace_id
      where k.name = 'other' and a.asset = 'BTC' and a.kind = 'available')`,
  )
})
