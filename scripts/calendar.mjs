// Runs the tests that depend on time, with clocks and time zones other than this machine's.
//   npm run calendar                 runs the usual tests under one clock
//   npm run calendar -- --all        runs more of them under all clocks, as for a release
//   npm run calendar -- --clock +60d --clock leap-day
//                                    sets only these clocks: +60d, +400d, leap-day, year-end
//
// Debian's faketime moves the clock of each test process; without it the run fails with a message.
// These tests run their platform, nodes and chains in their own process, so that all of them have
// the same clock. PostgreSQL keeps the real time, like a database host with a wrong clock.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from './built.mjs'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
ensureBuilt()

const DAY_S = 86_400
const now = () => Math.floor(Date.now() / 1000)
/** Returns the seconds until a moment, so that all processes of a run share one running clock. */
const until = (moment) => Math.floor(Date.parse(moment) / 1000) - now()
const nextYear = new Date().getUTCFullYear() + 1
/**
 * Returns the next 29 February. All clocks are in the future, because nodes refuse to work with a
 * clock that is behind their records.
 */
const leapDay = () => {
  for (let year = nextYear - 1; ; year++) {
    const moment = `${year}-02-29T23:59:30Z`
    // In other years JavaScript converts this date to the first of March.
    if (new Date(moment).getUTCMonth() === 1 && until(moment) > 0) return moment
  }
}

/** Seconds to add to the clock, and environment variables. */
const CLOCKS = {
  '+60d': { offset: () => 60 * DAY_S, env: { TZ: 'Pacific/Kiritimati' } },
  '+400d': { offset: () => 400 * DAY_S, env: { TZ: 'America/St_Johns', LANG: 'C', LC_ALL: 'C' } },
  'leap-day': { offset: () => until(leapDay()) },
  // The first test process starts a second later, so the next year begins while the tests run.
  'year-end': { offset: () => until(`${nextYear}-01-01T00:00:00Z`) - 2 },
}

/** The other clocks differ less from the real one, or on one day of a year or of four. */
const USUAL_CLOCKS = ['+400d']

/** Tests with their subjects. */
const TESTS = [
  ['request-auth/src/claims', 'lifetime of signed requests'],
  ['client/src/webhook', 'webhook signatures'],
  ['transport/link', 'TLS identities of nodes'],
  ['request-auth/src/pinned', 'validity of certificates'],
  ['keys/certificates', 'expiry and renewal of certificates'],
  ['api/history', 'age of requests at nodes'],
  ['policy/judge', 'age and receipts'],
  ['policy/proofs-and-limits', 'budgets and windows'],
  ['store/record', 'record clock'],
  ['app/clock', 'leases, nonces, rate windows'],
  ['people/console-sign-in', 'sessions, TOTP, invitations'],
  ['console/console-rules', 'audit log'],
  ['webhooks/webhooks.test', 'webhook retries'],
  ['aml/aml-ofac', 'age of the sanctions list'],
  ['invoices/invoices-states', 'invoice expiry'],
  ['http/api-idempotency', 'retention of idempotency keys'],
  ['trading/orders.test', 'exchange deadlines'],
  ['events/events-log', 'retention of events, cursors'],
  ['custody/prices/prices', 'age of prices'],
  ['authentication/unauthenticated-access', 'rate limits'],
  ['outcomes/expiry', 'transactions that expire'],
  ['tron/tron-staking', 'cooldown of unstaked TRX'],
  ['drills/upgrade.long', 'what an earlier version left behind'],
].map(([name]) => name)

/** Further tests for a release. */
const MORE = [
  'bodies/bodies',
  'request-auth/src/web-sign',
  'client/src/client',
  'client/src/failed',
  'trust/trust',
  'console/src',
  'backup/backup-external',
  'signing/certificates',
  'set-up/setup',
  'keys/keys',
  'operator/enrolment',
  'policy/refusals',
  'policy/rules',
  'authorities/forward',
  'authorities/staking',
  'keys/refresh',
  'recover/recovery-orders',
  'webhooks/webhook-egress',
  'aml/aml-order',
  'invoices/invoices.test',
  'invoices/invoices-mempool',
  'exchanges/exchange-accounts',
  'trading/conversions',
  'transactions/api-and-nodes',
  'app/api-messages',
  'prepaid-fee/prepaid-fee-order',
  'http/event-stream',
  'database/list-counts',
  'reserves/reserves.test',
  'aml/frozen-concurrently',
  'families/steps',
  'signing/hot-wallet',
  'recovery/recovery.test',
  'devnet/src/prices/prices',
  'devnet/src/venue',
]

let values
try {
  ;({ values } = parseArgs({
    options: { all: { type: 'boolean' }, clock: { type: 'string', multiple: true } },
  }))
} catch (error) {
  console.error(
    `${error.message}\nUsage: npm run calendar -- [--all] [--clock NAME]…   NAME: ${Object.keys(CLOCKS).join(', ')}`,
  )
  process.exit(2)
}
const chosen = values.clock ?? (values.all ? Object.keys(CLOCKS) : USUAL_CLOCKS)
const unknown = chosen.filter((name) => !(name in CLOCKS))
if (unknown.length > 0) {
  console.error(
    `There is no clock ${unknown.join(', ')}. Clocks: ${Object.keys(CLOCKS).join(', ')}`,
  )
  process.exit(2)
}
if (spawnSync('faketime', ['-f', '+0', 'true']).status !== 0) {
  console.error(
    'faketime does not run here. Install it (Debian: apt-get install faketime) and try again.',
  )
  process.exit(1)
}

const tests = values.all ? [...TESTS, ...MORE] : TESTS
const failed = []
for (const name of chosen) {
  const { offset, env = {} } = CLOCKS[name]
  const seconds = offset()
  const settings = Object.entries(env).map(([key, value]) => `${key}=${value}`)
  console.log(
    `\n== clock ${name}: ${new Date((now() + seconds) * 1000).toISOString()} ${settings.join(' ')}`.trimEnd(),
  )
  const { status } = spawnSync(
    'faketime',
    ['-f', `${seconds < 0 ? '' : '+'}${seconds}`, process.execPath, 'scripts/test.mjs', ...tests],
    { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } },
  )
  if (status !== 0) failed.push(name)
}
console.log(
  failed.length === 0
    ? `\ncalendar: all passed under ${chosen.join(', ')}`
    : `\ncalendar: tests failed under ${failed.join(', ')}`,
)
process.exit(failed.length === 0 ? 0 : 1)
