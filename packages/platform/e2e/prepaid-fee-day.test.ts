import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  call,
  fundedWallet,
  terminal,
  TestPlatform,
  transferBody,
  waitFor,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'

/**
 * Tests of the tier of a prepaid fee account when a UTC day begins. The platform's clock starts at
 * noon in the middle of the next month.
 */
const real = new Date()
const aheadMs = Date.UTC(real.getUTCFullYear(), real.getUTCMonth() + 1, 15, 12) - real.getTime()
const platform = new TestPlatform({ clock: () => Date.now() + aheadMs })
const MILLION = 1_000_000_000_000n
let user: User
let workspaceId: string

before(async () => {
  await platform.start({ CUSTODY_PRICE_REFRESH_S: '1' })
  user = await platform.user('growing')
  await fundedWallet(platform, user, 'ETH', '2')
  workspaceId = (
    await platform.database.one<{ id: string }>(`select id from workspaces where name = 'growing'`)
  )?.id as string
})
after(() => platform.remove())

interface Account {
  balance: string
  tier: string
  fees: Record<string, string>
}
interface Entry {
  type: string
  balance_change: string
}

const account = async () => (await call<Account>(user, 'POST', '/dac/v1/prepaid-fee', {})).body
const entries = async () =>
  (await call<{ data: Entry[] }>(user, 'GET', '/dac/v1/prepaid-fee/entries?limit=500')).body.data
const tierAndBalance = async () => {
  const { tier, balance } = await account()
  return [tier, balance]
}
/** Returns the UTC day of the platform's clock, YYYY-MM-DD. */
const today = () => new Date(platform.clock()).toISOString().slice(0, 10)
/** Sets the volume of a day, in millionths of a dollar. */
const setVolume = (daysAgo: number, amount: bigint) =>
  platform.database.query(
    `insert into prepaid_volumes values ($1, $2::date - $3::int, $4) on conflict (workspace_id, day)
      do update set amount_usd = excluded.amount_usd`,
    [workspaceId, today(), daysAgo, amount.toString()],
  )
/**
 * Sets yesterday as the day for which the account's tier was last decided, and waits until the
 * platform has decided it for today.
 */
const nextDay = async () => {
  await platform.database.query(
    'update prepaid_accounts set decided_on = $2::date - 1 where workspace_id = $1',
    [workspaceId, today()],
  )
  await waitFor('the decision of the day', () =>
    platform.database.one(
      'select 1 from prepaid_accounts where workspace_id = $1 and decided_on = $2::date',
      [workspaceId, today()],
    ),
  )
}

test(
  'a new day sets the tier by the last 30 days and charges the monthly subscription',
  { timeout: 300_000 },
  async () => {
    await setVolume(30, MILLION)
    await setVolume(31, 90n * MILLION)
    assert.equal((await account()).tier, 'STARTER', 'nothing changes before the day begins')
    await nextDay()
    const growth = await account()
    assert.deepEqual(
      [growth.tier, growth.balance, growth.fees['basis_points'], growth.fees['monthly']],
      ['GROWTH', '99501', '15', '499'],
    )
    assert.equal((await entries())[0]?.type, 'subscription')
    const paid = await call<Transfer>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('ETH', '0.5', '0x00000000000000000000000000000000000000c1'),
    )
    assert.equal(paid.body['platform_fee'], '2.25')
    await terminal(user, paid.body.id)
    await nextDay()
    assert.equal((await account()).balance, '99498.75', 'a month is paid once')
    await setVolume(2, 10n * MILLION)
    await nextDay()
    assert.deepEqual(
      await tierAndBalance(),
      ['BUSINESS', '98498.75'],
      'an upgrade pays the difference',
    )

    // A month later, the balance does not cover the subscription. The platform decides after both
    // changes.
    await platform.operator('prepaid-fee adjust', { workspace: 'growing', amount: '-98000' })
    await platform.database.query(
      `update prepaid_accounts set paid_month = (date_trunc('month',
        $2::date) - interval '1 month')::date where workspace_id = $1`,
      [workspaceId, today()],
    )
    await nextDay()
    assert.deepEqual(
      await tierAndBalance(),
      ['STARTER', '498.75'],
      'a subscription that is not covered is not taken',
    )
    await setVolume(2, 100n * MILLION)
    await nextDay()
    assert.deepEqual(await tierAndBalance(), ['ENTERPRISE', '498.75'])

    const tiers = await platform.database.query<{ tier: string }>(
      `select payload->>'tier' tier from events where workspace_id = $1
        and type = 'prepaid_fee.tier_changed' order by id`,
      [workspaceId],
    )
    assert.deepEqual(
      tiers.map(({ tier }) => tier),
      ['GROWTH', 'BUSINESS', 'STARTER', 'ENTERPRISE'],
    )
    const micro = (text: string) => BigInt(Math.round(Number(text) * 1e6))
    const explained = (await entries()).reduce(
      (sum, { balance_change: change }) => sum + micro(change),
      0n,
    )
    assert.equal(explained, micro((await account()).balance), 'the entries explain the balance')
    const { ok, differences } = (await platform.operator('audit')) as {
      ok: boolean
      differences: unknown
    }
    assert.equal(ok, true, JSON.stringify(differences))
  },
)

testEmittedEvents(() => platform.database, ['prepaid_fee.tier_changed'])
