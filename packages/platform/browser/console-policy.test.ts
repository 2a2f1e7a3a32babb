// The policy and its approvals in the control panel.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { documentHash, readDocument } from '@custody/policy'
import type { Browser, Page } from 'playwright-core'
import pino from 'pino'
import { startBrowser } from '../../../testing/browser.ts'
import { documentWith } from '../../policy/testing/documents.ts'
import { consolePages } from '../src/console-api/console/pages.ts'
import { useApi } from '../testing/api-support.ts'
import { look, Visitor } from '../testing/console-browser.ts'
import { join } from '../testing/console-fixture.ts'
import type { User } from '../testing/harness.ts'

const SINK = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const large = {
  id: 'large',
  effect: 'allow',
  match: { action: ['transfer'], assets: ['ETH'], to: 'any' },
  amount: { max: { ETH: '10' } },
  approvals: [{ group: 'treasury', k: 2 }],
}
const documentOf = (rules: unknown[], more: Parameters<typeof documentWith>[1] = {}) => {
  const text = JSON.stringify(documentWith(rules, { workspace: 'acme', ...more }))
  const document = readDocument(text)
  return { text, document, hash: documentHash(document) }
}
const FIRST = documentOf([large])
const NEXT = documentOf([{ ...large, amount: { max: { ETH: '20' } } }], {
  number: 2,
  previous: FIRST.hash,
})
const NOTHING = { number: null, hash: null, document: null, next: null, stops: [] }
const GOVERNED = {
  number: 1,
  hash: FIRST.hash,
  document: FIRST.text,
  next: {
    number: 2,
    hash: NEXT.hash,
    document: NEXT.text,
    acts_at: 1_900_000_000,
    vetoed_by: null,
  },
  stops: [{ hash: 'ab'.repeat(32), sub_account: 'main', by: 'bob', at: 1_764_000_000 }],
}
const VERSIONS = {
  versions: [
    {
      number: 2,
      hash: NEXT.hash,
      kind: 'reset',
      since: 1_795_700_000,
      document: NEXT.text,
      signed_by: [{ person: 'bob', key: 'k1', at: null }],
    },
    {
      number: 1,
      hash: FIRST.hash,
      since: 1_795_600_000,
      document: FIRST.text,
      signed_by: [{ person: 'alice', key: 'k1', at: null }],
    },
  ],
}

const WINDOWS = {
  policy: { number: 1, hash: FIRST.hash },
  windows: [
    {
      rule: 'large',
      window: 'day',
      per: 'share',
      of: ['main'],
      hours: 24,
      readings: [
        { asset: 'ETH', used: '4500000000000000000', max: '5000000000000000000' },
        { asset: 'BTC', used: '0', max: '100000000' },
        { asset: null, used: '3', max: '10' },
      ],
    },
  ],
  left_off: false,
}

const api = useApi({}, consolePages(pino({ level: 'silent' })))
let view: object = NOTHING
let browser: Browser
let visitor: Visitor
let page: Page
let origin = ''
let user: User & { workspaceId: string; subAccountId: string }

before(async () => {
  await api.started
  api.askNode = async (_node: number, path: string) => {
    if (path === '/policy/versions') return view === NOTHING ? { versions: [] } : VERSIONS
    if (path === '/policy/windows') return view === NOTHING ? { policy: null } : WINDOWS
    return view
  }
  user = await api.user('acme')
  const owner = await join(api, user.workspaceId, 'owner')
  browser = await startBrowser()
  origin = owner.browser.origin
  visitor = new Visitor(browser, origin)
  const opened = await visitor.open()
  page = opened.page
  const [name = '', ...value] = owner.browser.cookie.split('=')
  await opened.context.addCookies([{ name, value: value.join('='), url: origin }])
})
after(async () => {
  await browser?.close()
})

/** Opens a page, and returns its text once it has been read. */
async function open(path: string, read: string): Promise<void> {
  const done = page.waitForResponse((response) => response.url().includes(read))
  await page.goto(`${origin}/console/w/acme/main/${path}`)
  assert.equal((await done).status(), 200)
}
const mainText = async () => (await page.locator('main').innerText()).replaceAll(/\s+/g, ' ')
const shows = async (...parts: string[]) => {
  const text = await mainText()
  for (const part of parts) assert.ok(text.includes(part), `${part} is missing in: ${text}`)
}

/** Writes a transfer of 0.6 ETH that waits for approvals, with one decision by a passkey. */
async function waitingTransfer(): Promise<string> {
  const { database } = api
  const row = await database.one<{ id: string }>(
    `insert into transactions (id, kind, workspace_id, sub_account_id, asset, network, amount, fee,
       fee_asset, source_type, destination_type, destination_id, state, status, next_run_at, request, memo)
     values (gen_random_uuid(), 'WITHDRAWAL', $1, $2, 'ETH', 'ETH', '600000000000000000', '0', 'ETH', 'INTERNAL',
       'EXTERNAL', $3, 'APPROVAL', 'pending', $4, $5, 'supplier 2') returning id`,
    [
      user.workspaceId,
      user.subAccountId,
      SINK,
      new Date(api.now() + 3_600_000),
      JSON.stringify({ api_key: user.apiKey, token: 't', method: 'POST', uri: '/', body: '{}' }),
    ],
  )
  const id = row!.id
  await database.query(`update api_users set label = 'payouts' where api_key = $1`, [user.apiKey])
  const statement = {
    v: 1,
    mode: 'local',
    workspace: 'acme',
    nodes: 'ab'.repeat(32),
    policy: { number: 1, hash: FIRST.hash },
    id,
    subject: 'cd'.repeat(32),
    action: 'transfer',
    facts: {
      sub_account: 'main',
      asset: 'ETH',
      network: 'ETH',
      contract: null,
      decimals: 18,
      amount: '600000000000000000',
      to: SINK,
      tag: null,
      fee_asset: 'ETH',
      fee_decimals: 18,
      fee_max: '100000000000000000',
      standing: null,
      resource: null,
    },
  }
  await database.query(
    `insert into approval_requests (workspace_id, transaction_id, sub_account_id, state, statement,
       needs, expires_at, created_at)
     values ($1, $2, $3, 'open', $4, '[{"group":"treasury","k":2,"have":1}]', $5, $6)`,
    [
      user.workspaceId,
      id,
      user.subAccountId,
      JSON.stringify(statement),
      new Date(api.now() + 86_400_000),
      new Date(api.now()),
    ],
  )
  await database.query(
    `insert into approvals (workspace_id, transaction_id, person, decision, key, signed_at,
       expires_at, passkey, created_at)
     values ($1, $2, 'dan', 'approve', 'p1', 1795600000, 1795686400, $3, now())`,
    [
      user.workspaceId,
      id,
      JSON.stringify({ client_data: 'e30', authenticator_data: 'AAAA', signature: 'AAAA' }),
    ],
  )
  return id
}

test('pages without a policy explain what applies instead', async () => {
  await open('policy', '/dac/v1/policy')
  await page.getByText('This workspace has no policy').waitFor()
  await look(page, 'no policy')
  await open('approvals', '/dac/v1/approvals')
  await page.getByText('Nothing waits for approvals').waitFor()
  await look(page, 'no approvals')
})

test('a transfer that waits is listed, with what people sign and how they do', async () => {
  const id = await waitingTransfer()
  await open('approvals', '/dac/v1/approvals')
  await page.getByRole('region', { name: 'Approvals' }).waitFor()
  await shows('0.6 ETH', '1 of 2 of treasury', 'supplier 2', 'payouts')
  await page.getByRole('link', { name: 'Approvals 1 open' }).waitFor()
  await look(page, 'approvals', { picture: 'approvals', isOnPhone: true })
  await open(`approvals/${id}`, `/dac/v1/approvals/${id}`)
  await page.getByText('What an approval signs').waitFor()
  await shows('supplier 2', 'payouts', 'Requested by, not signed')
  await shows('0.6 ETH', SINK, '0.1 ETH', 'p1 (passkey)', `approve ${id} --as PERSON --key FILE`)
  await look(page, 'an approval', { picture: 'approval', isWhole: true, isOnPhone: true })
})

/** Creates a proposed change that waits for an approval and a proof. */
async function openChange(): Promise<string> {
  const row = await api.database.one<{ id: string }>(
    `insert into policy_changes (workspace_id, id, state, number, hash, previous, document, changes,
       warnings, comment, acts_at, needs, missing, expires_at, created_at)
     values ($1, gen_random_uuid(), 'open', 2, $2, $3, '{"mode":"local","nodes":"n"}', $4, '[]',
       'Raise the limit', 1795600000, '[{"group":"admins","k":2,"have":1}]',
       '[{"person":"dan","key":"k2"}]', $5, $6) returning id`,
    [
      user.workspaceId,
      'cd'.repeat(32),
      FIRST.hash,
      JSON.stringify([
        { path: 'rules.large', tendency: 'widens', sentence: 'The rule large allows 20 ETH.' },
      ]),
      new Date(api.now() + 86_400_000),
      new Date(api.now()),
    ],
  )
  return row!.id
}

test('a proposed change is listed, with its differences, who is missing and how people approve', async () => {
  view = GOVERNED
  const id = await openChange()
  await open('approvals', '/dac/v1/approvals')
  await page.getByText('Policy document 2').waitFor()
  await shows('Raise the limit', '1 of 2 of admins')
  await open(`approvals/${id}`, `/dac/v1/policy/changes/${id}`)
  await page.getByText('What it changes').waitFor()
  await shows(
    'The rule large allows 20 ETH.',
    'k2 of dan',
    'cd'.repeat(32),
    `approve ${id} --as PERSON --key FILE`,
  )
  await look(page, 'a policy change', { isWhole: true, isOnPhone: true })
  await open('policy', '/dac/v1/policy/changes?state=open')
  await page.getByText('Document 2 is proposed').waitFor()
  await shows('The rule large allows 20 ETH.', 'k2 of dan')
})

test('the policy is shown as sentences, with what is pending and what is stopped', async () => {
  view = GOVERNED
  await open('policy', '/dac/v1/policy')
  await page.getByText('What no rule allows is denied.').waitFor()
  const history = page.getByRole('region', { name: 'History' })
  await history.getByText('reset by the operators').waitFor()
  await history.getByText('installation').waitFor()
  await shows(
    'all three signer nodes',
    FIRST.hash,
    'large: Allow transfers of ETH',
    'bob stopped the sub-account main',
    'Document 2 comes into force',
    'of at most 20 ETH',
    'Compliance system',
    'alice',
    'large, day 24 h part of sub-account main 4.5 ETH of 5 ETH',
    '3 of 10 payments',
  )
  assert.ok(!(await mainText()).includes('1 BTC'), 'what is not used is left out')
  await look(page, 'the policy', { picture: 'policy', isWhole: true, isOnPhone: true })
  assert.deepEqual(visitor.problems, [])
})
