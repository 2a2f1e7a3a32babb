// Exports of rows contain text of strangers: memos, tags, addresses, names and error messages.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join as joinPath } from 'node:path'
import { fileURLToPath } from 'node:url'
import { before, test } from 'node:test'
import { oneLine } from '@custody/chains/terminal'
import { OPERATOR, writeAudit } from '../people/audit-log.ts'
import { verifyLog } from '../people/audit-chain.ts'
import { post } from '../../core/ledger/post.ts'
import { exportAuditLog } from '../../server/operator/console.ts'
import { useApi } from '../../../testing/api-support.ts'
import { join, type Somebody } from '../../../testing/console-fixture.ts'
import type { User } from '../../../testing/harness.ts'

const api = useApi()
let acme: User & { workspaceId: string; subAccountId: string }
let admin: Somebody

const HOSTILE = [
  '\u001b[2J\u001b[31mred',
  'rent \u202egnp.exe\u202c',
  'two\nlines',
  'carriage\rreturn',
  '\ttab',
  '=HYPERLINK("http://evil.test","x")',
  '+1',
  '-5',
  '@SUM(A1)',
  '\u202e=1+1',
  '\n=1+1',
  'a;=1+1',
  '"quoted", and \u0085\u009b\u2028\u2066',
]
/** Columns of the export that can contain text of strangers. */
const TEXTS = [
  'source_id',
  'destination_id',
  'address_tag',
  'hash',
  'memo',
  'sequence_id',
  'failure_reason',
] as const
/** Columns whose texts are the platform's own words, names of assets, times and IDs. */
const WORDS = [
  'id',
  'type',
  'status',
  'sub_status',
  'created_at',
  'confirmed_at',
  'asset',
  'fee_asset',
  'source_type',
  'destination_type',
]
const NUMBERS = ['amount', 'amount_in_usd', 'fee', 'platform_fee', 'confirmations']

before(async () => {
  await api.started
  acme = await api.user('acme')
  admin = await join(api, acme.workspaceId, 'admin')
  for (const [at, text] of HOSTILE.entries())
    await api.database.query(
      `insert into transactions (id, kind, workspace_id, sub_account_id, asset, network, amount,
         fee_asset, source_type, destination_type, state, status, created_at, amount_usd,
         source_id, destination_id, address_tag, hash, memo, sequence_id, failure_reason)
       values (gen_random_uuid(), 'WITHDRAWAL', $1, $2, 'BTC', 'BTC', 12345, 'BTC', 'INTERNAL',
         'EXTERNAL', 'FAILED', 'failed', now() - $4::int * interval '1 minute', 1500000,
         $3, $3, $3, $3, $3, $3, $3)`,
      [acme.workspaceId, acme.subAccountId, text, at],
    )
})

/** Parses CSV according to RFC 4180. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const match of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '')
    if (match[3] === '\r\n') rows.push([])
  }
  return rows.slice(0, -1)
}
const exported = (format: string) =>
  admin.browser.ask(
    'GET',
    `/workspaces/acme/sub-accounts/main/transactions/export?format=${format}`,
  )

test('these tests cover every export of the platform', () => {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .filter((name) =>
      /content-disposition|text\/csv|x-ndjson/.test(readFileSync(joinPath(root, name), 'utf8')),
    )
  assert.deepEqual(files.toSorted(), [
    'console-api/console/audit-log.ts',
    'console-api/console/export-transactions.ts',
    'custody/statements/export-statement.ts',
  ])
})

test('attack: no text column of the CSV export contains raw control characters or formulas', async () => {
  const { text, status } = await exported('csv')
  assert.equal(status, 200)
  assert.ok(text.startsWith('\ufeffid,'), 'Excel reads UTF-8 only after a byte order mark')
  const lines = text.slice(1).split('\r\n')
  assert.equal(lines.length, HOSTILE.length + 2, 'no text adds a line')
  for (const line of lines) assert.equal(line, oneLine(line), JSON.stringify(line))
  const [head = [], ...rows] = readCsv(text.slice(1))
  assert.deepEqual(head.toSorted(), [...TEXTS, ...WORDS, ...NUMBERS].toSorted())
  for (const [at, original] of HOSTILE.entries()) {
    const cell = (name: string) => rows[at]?.[head.indexOf(name)] ?? ''
    for (const name of TEXTS) {
      const text = cell(name)
      assert.doesNotMatch(text, /^\s*[=+\-@]/, `${name}: ${text}`)
      assert.doesNotMatch(text, /;\s*[=+\-@]/, `${name}: ${text}`)
      assert.equal(text.replaceAll("'", ''), oneLine(original).replaceAll("'", ''), name)
    }
    for (const name of NUMBERS) assert.match(cell(name), /^(\d+(\.\d+)?)?$/, name)
    assert.equal(cell('amount'), '0.00012345')
    assert.match(cell('amount_in_usd'), /^1\.50*$/)
  }
})

test('both exports begin with a byte order mark, which bom=false leaves out', async () => {
  await api.database.query(
    `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, 'XRP', 'XRP')`,
    [acme.workspaceId, acme.subAccountId],
  )
  for (const path of ['transactions/export', 'api/dac/v1/statement/export']) {
    const read = async (query: string) => {
      const at = `/workspaces/acme/sub-accounts/main/${path}?${query}`
      const { text, status } = await admin.browser.ask('GET', at)
      return { text, status }
    }
    const { text } = await read('asset=XRP')
    assert.match(text, /^\ufeff[a-z_]+,/, path)
    assert.deepEqual(await read('asset=XRP&bom=false'), { text: text.slice(1), status: 200 })
    assert.equal((await read('asset=XRP&bom=no')).status, 400)
  }
})

test('attack: no text column of a statement contains raw control characters or formulas', async () => {
  const wallet = randomUUID()
  await api.database.query(
    `insert into wallets (id, workspace_id, sub_account_id, asset, network)
      values ($1, $2, $3, 'BTC', 'BTC')`,
    [wallet, acme.workspaceId, acme.subAccountId],
  )
  const transactions = await api.database.query<{ id: string }>(
    'select id from transactions where workspace_id = $1 order by created_at desc, id desc',
    [acme.workspaceId],
  )
  const scope = { workspace: acme.workspaceId, asset: 'BTC' }
  for (const { id } of transactions) {
    const moved = { ...scope, wallet, kind: 'available' as const, amount: 5n }
    await post(api.database, 'settle', id, [moved, { ...scope, kind: 'chain', amount: -5n }])
  }
  const { text, status } = await admin.browser.ask(
    'GET',
    '/workspaces/acme/sub-accounts/main/api/dac/v1/statement/export?asset=BTC',
  )
  assert.equal(status, 200, text)
  const lines = text.replace(/^\ufeff/, '').split('\r\n')
  assert.equal(lines.length, HOSTILE.length + 4, 'no text adds a line')
  for (const line of lines) assert.equal(line, oneLine(line), JSON.stringify(line))
  const [head = [], ...rows] = readCsv(text.replace(/^\ufeff/, ''))
  for (const [at, original] of HOSTILE.entries()) {
    for (const name of ['hash', 'counterparty', 'sequence_id']) {
      const shown = rows[at + 1]?.[head.indexOf(name)] ?? ''
      assert.doesNotMatch(shown, /(?:^|;)\s*[=+\-@]/, `${name}: ${shown}`)
      assert.equal(shown.replaceAll("'", ''), oneLine(original).replaceAll("'", ''), name)
    }
  }
})

test('the JSON export contains no raw control characters, and its values are unchanged', async () => {
  const { text, body } = await exported('json')
  assert.notEqual(text.charCodeAt(0), 0xfeff, 'JSON has no byte order mark')
  for (const line of text.split('\n')) assert.equal(line, oneLine(line), JSON.stringify(line))
  const rows = body as unknown as Record<string, string>[]
  for (const [at, original] of HOSTILE.entries())
    for (const name of TEXTS) assert.equal(rows[at]?.[name], original, name)
})

test('both exports of the audit log contain no raw control characters, and verify', async () => {
  const hostile = HOSTILE.join(' ')
  await api.database.transaction((tx) =>
    writeAudit(
      tx,
      acme.workspaceId,
      { ...OPERATOR, id: hostile, name: hostile },
      { action: 'note.written', object: hostile, details: { reason: hostile } },
    ),
  )
  const panel = (await admin.browser.ask('GET', '/workspaces/acme/audit-log/export')).text
  const { text } = await exportAuditLog(api.services, { workspace: 'acme' })
  for (const each of [panel, String(text)]) {
    for (const line of each.split('\n')) assert.equal(line, oneLine(line), JSON.stringify(line))
    assert.ok(each.split('\n').some((line) => line !== '' && JSON.parse(line).object === hostile))
    await verifyLog(each.split('\n'))
  }
})
