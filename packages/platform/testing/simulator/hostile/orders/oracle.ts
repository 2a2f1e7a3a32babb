import type { DecodedTransaction, SignedTransaction } from '@custody/chains'
import type { Ledger } from './ledgers.ts'
import type { CallerRequest } from './requests.ts'
import type { Scenario } from './scenario.ts'
import { SUB_ACCOUNTS, type Wallets } from './wallets.ts'

/** A transaction that nodes have signed. */
export interface Signed {
  transaction: SignedTransaction
  /** Determines only the order in which the block builder tries transactions. */
  decoded: DecodedTransaction
  /** It was signed before the stop of the scenario. */
  isBeforeStop: boolean
  /** Sub-account that pays it; 0 is the gas tank. */
  from: number
}

/** Balances of all owners and of foreign addresses. */
export interface Balances {
  owned: Map<number, bigint>
  foreign: Map<string, bigint>
}

/** Part of a cap by which a replacement may cost more than what it replaces. */
const REPLACEMENT = [5n, 4n] as const

/** @param ticker default: the native coin */
export async function readBalances(
  ledger: Ledger,
  wallets: Wallets,
  foreign: readonly string[],
  ticker?: string,
): Promise<Balances> {
  const owned = new Map<number, bigint>()
  for (const sub of [0, ...SUB_ACCOUNTS]) {
    let sum = 0n
    for (const address of wallets.owned(sub)) sum += await ledger.balance(address, ticker)
    owned.set(sub, sum)
  }
  const others = new Map<string, bigint>()
  for (const address of foreign) others.set(address, await ledger.balance(address, ticker))
  return { owned, foreign: others }
}

const costOf = ({ decoded }: Signed, own: ReadonlySet<string>): bigint =>
  decoded.payments.reduce(
    (sum, { address, amount }) => sum + (own.has(address) ? 0n : amount),
    decoded.fee_max,
  )

/**
 * A block builder that cooperates with the platform: of transactions that exclude each other it
 * includes the one that costs the workspace most.
 */
export async function execute(
  ledger: Ledger,
  signed: readonly Signed[],
  own: ReadonlySet<string>,
): Promise<number> {
  const byCost = [...signed].sort((a, b) => {
    const [one, two] = [costOf(a, own), costOf(b, own)]
    return one === two ? 0 : one > two ? -1 : 1
  })
  const used = new Set<string>()
  const chosen = byCost.filter(({ decoded: { consumes } }) => {
    if (consumes.some((each) => used.has(each))) return false
    for (const each of consumes) used.add(each)
    return true
  })
  const nonceOf = ({ decoded: { nonce } }: Signed): bigint => nonce ?? 0n
  chosen.sort((a, b) => (nonceOf(a) < nonceOf(b) ? -1 : nonceOf(a) > nonceOf(b) ? 1 : 0))
  let included = 0
  for (const { transaction } of chosen) {
    const { kind } = await ledger.broadcast(transaction.raw)
    if (kind === 'accepted') included++
    await ledger.mine(1)
  }
  await ledger.mine(2)
  return included
}

interface Judged {
  scenario: Scenario
  /** Ticker of the network's coin, in which fees are paid. */
  native: string
  /** Requests of which nodes have signed something: those that signed orders contain. */
  requests: readonly CallerRequest[]
  signed: readonly Signed[]
  cap: bigint
  window: bigint
  /** Fee caps that nodes allow in 24 hours for each sub-account and network. */
  budgetFeeCaps: number
}

/** What the workspace may lose at most. */
interface Allowed {
  /** What foreign addresses may receive, by address. */
  paid: Map<string, bigint>
  /** What a sub-account may lose beyond what foreign addresses receive. */
  burnt: (sub: number) => bigint
  /** What the gas tank may lose. */
  tank: bigint
  /** What the sweeps of a sub-account, to which no policy applies, may cost. */
  swept: bigint
}

/** Derives from the callers' requests and the policy what the workspace may lose. */
function allowedBy({
  scenario: { mode },
  native,
  requests,
  signed,
  cap,
  budgetFeeCaps,
}: Judged): Allowed {
  const budget = BigInt(budgetFeeCaps) * cap
  const isNothingAllowed = mode === 'deny' || mode === 'stop'
  const paid = new Map<string, bigint>()
  const add = (to: string, units: bigint): void => {
    paid.set(to, (paid.get(to) ?? 0n) + units)
  }
  const before = signed.filter(({ isBeforeStop }) => isBeforeStop)
  if (!isNothingAllowed) {
    for (const { kind, asset, to, units } of requests)
      if (asset === native && (kind === 'pay' || kind === 'rule')) add(to, units)
  } else
    for (const { decoded } of before)
      if (decoded.asset === native)
        for (const { address, amount } of decoded.payments) add(address, amount)
  const replaced = (list: readonly Signed[]): bigint =>
    (list.reduce((sum, { decoded }) => sum + decoded.fee_max, 0n) * REPLACEMENT[0]) / REPLACEMENT[1]
  const earlyOf = (sub: number): Signed[] => before.filter(({ from }) => from === sub)
  const fuelled = earlyOf(0).reduce((sum, { decoded }) => sum + decoded.payments[0]!.amount, 0n)
  // Sweeps are not requested by a caller. A sub-account may use a quarter of the workspace's budget.
  const swept = mode === 'stop' ? 0n : budget / 4n
  return {
    paid,
    swept,
    burnt: (sub) => {
      if (isNothingAllowed) return replaced(earlyOf(sub)) + swept
      const mine = requests.filter(({ subAccount }) => subAccount === sub)
      const pays = mine.filter(({ kind }) => kind === 'pay').length
      const rules = mine.filter(({ kind }) => kind === 'rule')
      // The daily cap of a rule for the native coin includes fees; a budget limits those of tokens.
      const ofTokens = rules.some(({ asset }) => asset !== native) ? budget : 0n
      return rules.reduce(
        (sum, { asset, units }) => (asset === native ? sum + units : sum),
        BigInt(pays) * cap + swept + ofTokens,
      )
    },
    tank: isNothingAllowed
      ? fuelled + replaced(earlyOf(0)) + swept * BigInt(SUB_ACCOUNTS.length)
      : budget * BigInt(SUB_ACCOUNTS.length) + budget,
  }
}

/** Compares balances with what the requests and the policy allow. Returns what does not fit. */
export function judge(judged: Judged, before: Balances, after: Balances): string[] {
  const { scenario, window } = judged
  // Two pairs of nodes that meet only in a hostile node may each sign a payment.
  const times = scenario.isLeaderHostile ? 2n : 1n
  const allowed = allowedBy(judged)
  const problems: string[] = []
  let received = 0n
  for (const [address, balance] of after.foreign) {
    const gained = balance - before.foreign.get(address)!
    received += gained
    const most = times * (allowed.paid.get(address) ?? 0n)
    if (gained > most) problems.push(`${address} received ${gained}, and ${most} are allowed`)
  }
  const lost = (sub: number): bigint => before.owned.get(sub)! - after.owned.get(sub)!
  const sum = [...SUB_ACCOUNTS].reduce((all, sub) => all + lost(sub), 0n)
  const most = times * [...SUB_ACCOUNTS].reduce((all, sub) => all + allowed.burnt(sub), 0n)
  const ofTank = times * allowed.tank
  const burnt = lost(0) + sum - received
  if (burnt > most + ofTank) problems.push(`${burnt} were burnt, and ${most + ofTank} are allowed`)
  if (lost(0) > ofTank) problems.push(`the gas tank lost ${lost(0)}, and ${ofTank} are allowed`)
  for (const sub of SUB_ACCOUNTS) {
    if (scenario.mode === 'window') {
      const limit = times * (window + allowed.swept)
      if (lost(sub) > limit)
        problems.push(`sub-account ${sub} lost ${lost(sub)}, and its window allows ${limit}`)
    }
    if (scenario.mode === 'own' && lost(sub) < 0n)
      problems.push(`sub-account ${sub} received ${-lost(sub)}, which the policy denies`)
  }
  return problems
}

/**
 * Compares balances of a token with what the requests and the policy allow. No token is burnt, and a
 * sub-account loses only what its own callers requested.
 */
export function judgeToken(
  { scenario: { mode, isLeaderHostile }, requests, signed }: Judged,
  token: string,
  before: Balances,
  after: Balances,
): string[] {
  const times = isLeaderHostile ? 2n : 1n
  // The window names only the native coin, so its rule fits no act of a token.
  const isNothingAllowed = mode === 'deny' || mode === 'stop' || mode === 'window'
  const moves = isNothingAllowed
    ? signed
        .filter(({ isBeforeStop, decoded }) => isBeforeStop && decoded.asset === token)
        .flatMap(({ from, decoded: { payments } }) =>
          payments.map(({ address: to, amount: units }) => ({ from, to, units })),
        )
    : requests
        .filter(({ kind, asset }) => asset === token && (kind === 'pay' || kind === 'rule'))
        .map(({ subAccount: from, to, units }) => ({ from, to, units }))
  const sum = (fits: (move: (typeof moves)[number]) => boolean): bigint =>
    times * moves.filter(fits).reduce((all, { units }) => all + units, 0n)
  const problems: string[] = []
  for (const [address, balance] of after.foreign) {
    const gained = balance - before.foreign.get(address)!
    const most = sum(({ to }) => to === address)
    if (gained > most)
      problems.push(`${address} received ${gained} ${token}, and ${most} are allowed`)
  }
  for (const sub of SUB_ACCOUNTS) {
    const lost = before.owned.get(sub)! - after.owned.get(sub)!
    const most = sum(({ from }) => from === sub)
    if (lost > most)
      problems.push(`sub-account ${sub} lost ${lost} ${token}, and ${most} are allowed`)
    if (mode === 'own' && lost < 0n)
      problems.push(`sub-account ${sub} received ${-lost} ${token}, which the policy denies`)
  }
  return problems
}
