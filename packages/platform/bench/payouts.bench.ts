import { setTimeout as sleep } from 'node:timers/promises'
import { report } from '../../../testing/figures.ts'
import {
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { cpuSeconds } from './processes.ts'

/**
 * Compares payouts of one hot wallet with the same number of payouts of many wallets, in one run:
 * `node bench/payouts.bench.ts [payouts] [wallets] [assets]`. A payout counts when it is first
 * broadcast, because the chain determines the time until it is confirmed.
 */
const [payouts, wallets] = [Number(process.argv[2] ?? 200), Number(process.argv[3] ?? 10)]
const assets = (process.argv[4] ?? 'ETH,USDT_ETH').split(',')
const SINKS: Record<string, string> = {
  ETH: '0x00000000000000000000000000000000000000be',
  TRX: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY',
  XRP: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe',
  BTC: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
  SOL: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
}
const platform = new TestPlatform({ mode: 'prepared' })

/** Returns the median time in milliseconds in each state, in order. */
async function durations(ids: readonly string[]): Promise<string> {
  const rows = await platform.database.query<{ state: string; ms: number }>(
    `select state, percentile_disc(0.5) within group (order by ms)::float ms from (
       select state, min(id) first, extract(epoch from sum(till - at)) * 1000 ms from (
         select id, transaction_id, state, at, lead(at) over (partition by transaction_id
           order by id) till from transaction_states
         where transaction_id = any($1)) spans
       where till is not null group by transaction_id, state) sums
     group by state order by min(first)`,
    [ids],
  )
  return rows.map(({ state, ms }) => `${state} ${ms.toFixed(0)}`).join(', ')
}

interface Measured {
  stepDurations: string
  perSecond: number
  signatures: number
  fuels: number
  cpu: Record<string, number>
  confirmedS: number
}

async function measure(asset: string, users: readonly User[]): Promise<Measured> {
  const sink = SINKS[asset.split('_').at(-1) as string] as string
  const before = cpuSeconds(platform.process?.pid as number)
  const begun = Date.now()
  const ids: string[] = []
  const bodies = Array.from({ length: payouts }, (_, at) => users[at % users.length] as User)
  for (let at = 0; at < bodies.length; at += 16) {
    ids.push(
      ...(await Promise.all(
        bodies.slice(at, at + 16).map(async (user) => {
          const { status, body, text } = await call<Transfer>(
            user,
            'POST',
            '/dac/v1/transaction',
            transferBody(asset, '1', sink),
          )
          if (status !== 200) throw new Error(text)
          return body.id
        }),
      )),
    )
  }
  const left = async () =>
    Number(
      (
        await platform.database.one<{ count: string }>(
          `select count(*) count from transactions where id = any($1) and status = 'pending'`,
          [ids],
        )
      )?.count,
    )
  for (const deadline = begun + 600_000; (await left()) > 0;) {
    if (Date.now() > deadline)
      throw new Error(`${await left()} of ${payouts} payouts of ${asset} are not through`)
    await sleep(250)
  }
  const failed = await platform.database.query<{ failure_reason: string }>(
    `select failure_reason from transactions where id = any($1) and status = 'failed'`,
    [ids],
  )
  if (failed.length > 0)
    throw new Error(
      `${failed.length} of ${payouts} payouts of ${asset} failed: ${failed[0]?.failure_reason}`,
    )
  const made = await platform.database.one<{ last: Date; count: string; fuels: string }>(
    `select max(c.broadcast_at) filter (where c.transaction_id = any($1)) last, count(*) count,
       count(*) filter (where t.kind = 'FUEL') fuels
     from chain_transactions c join transactions t on t.id = c.transaction_id
     where c.signed is not null and c.created_at >= $2 and t.kind in ('WITHDRAWAL', 'FUEL', 'LEND',
       'LEND_BACK')`,
    [ids, new Date(begun)],
  )
  const after = cpuSeconds(platform.process?.pid as number)
  const cpu = Object.fromEntries(
    Object.keys(after).map((name) => [
      name,
      (((after[name] ?? 0) - (before[name] ?? 0)) / payouts) * 1000,
    ]),
  )
  return {
    stepDurations: await durations(ids),
    perSecond: payouts / (((made?.last.getTime() ?? 0) - begun) / 1000),
    signatures: Number(made?.count) / payouts,
    fuels: Number(made?.fuels),
    cpu,
    confirmedS: (Date.now() - begun) / 1000,
  }
}

try {
  await platform.start({ CUSTODY_RATE_LIMIT: '1000000' })
  for (const asset of assets) {
    const open = async (subAccount: string, amount: number): Promise<User> => {
      const user = await platform.user(`bench-${asset.toLowerCase().replaceAll('_', '-')}`, {
        subAccount,
        rateLimit: 1_000_000,
      })
      await fundedWallet(platform, user, asset, String(amount))
      return user
    }
    // The first fill of a local gas tank is sufficient for only a few dozen token transfers.
    const fillTank = async (user: User) => {
      const network = asset.split('_').at(-1) as string
      const tank = (
        await call<{ network: string; address: string }[]>(user, 'GET', '/dac/v1/gas-tanks')
      ).body.find((each) => each.network === network)
      if (tank?.address) await platform.fund(network, tank.address, String(payouts * 50))
    }
    const hot = await open('hot', payouts * 3 + 10)
    const callers: User[] = []
    for (let at = 0; at < wallets; at++)
      callers.push(await open(`sub-${at}`, Math.ceil(payouts / wallets) * 3 + 10))
    await fillTank(hot)
    const many = await measure(asset, callers)
    const one = await measure(asset, [hot])
    const cost = (cpu: Record<string, number>) =>
      Object.entries(cpu)
        .map(([name, ms]) => `${name} ${ms.toFixed(1)}`)
        .join(', ')
    report({
      name: `${asset}: payouts of one hot wallet`,
      unit: '/s',
      value: one.perSecond,
      floor: many.perSecond,
      target: { atLeast: 0.8 },
      note: `floor: over ${wallets} wallets; all confirmed after ${one.confirmedS.toFixed(0)} s and ${many.confirmedS.toFixed(0)} s`,
    })
    console.log(
      `  milliseconds in each state, median: ${one.stepDurations}\n  over ${wallets} wallets: ${many.stepDurations}`,
    )
    const isFuelled = one.fuels > 0
    report({
      name: `${asset}: signatures a payout of one hot wallet`,
      unit: '',
      value: one.signatures,
      floor: null,
      target: { atMost: 1.1 },
      note: `${isFuelled ? `${one.fuels} fuels; ` : ''}over ${wallets} wallets ${many.signatures.toFixed(2)}`,
    })
    report({
      name: `${asset}: processor time a payout`,
      unit: 'ms',
      value: Object.values(one.cpu).reduce((sum, ms) => sum + ms, 0),
      floor: null,
      note: `${cost(one.cpu)}; over ${wallets} wallets ${cost(many.cpu)}`,
    })
  }
} finally {
  await platform.remove()
}
