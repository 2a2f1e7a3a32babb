import {
  formatUnits,
  LIMITS,
  parseUnits,
  type Act,
  type PastAct,
  type Person,
  type PolicyDocument,
  type PolicyRegistry,
  type Rule,
} from '@custody/policy'

/** What a document is drafted from. */
export interface DraftParts {
  registry: PolicyRegistry
  place: Pick<PolicyDocument, 'mode' | 'workspace' | 'nodes'>
  /** The document that the draft is to follow; null: the draft is the first one. */
  previous: { document: PolicyDocument; hash: string } | null
  acts: readonly PastAct[]
  /** A forward of each standing rule. */
  forwards: readonly Act[]
  apiKeys: readonly string[]
  /** Assets of the workspace's wallets. */
  assets: readonly string[]
}

const PEOPLE = ['person-1', 'person-2', 'person-3']
/** Text in place of a public key. It is not base64, so `policy check` refuses the document. */
const spkiOf = (person: string): string => `FILL-IN-SPKI-OF-${person.toUpperCase()}`

const DELAY_S = 3600
const HOURS = 24
/** Single payments that a draft without a history allows without approvals, in the asset's unit. */
const SMALL: Readonly<Record<string, string>> = {
  BTC: '0.01',
  BCH: '0.5',
  LTC: '2',
  DASH: '5',
  DOGE: '1000',
  ETH: '0.2',
  BASE: '0.2',
  ARB: '0.2',
  OP_ETH: '0.2',
  BSC: '0.5',
  POL: '500',
  AVAX: '10',
  FTM: '500',
  CRO: '2000',
  ONE: '20000',
  KLAY: '2000',
  TRX: '1000',
  XRP: '200',
  XLM: '1000',
  ADA: '500',
  SOL: '2',
}
const SMALL_STABLE = '500'
const SMALL_OTHER = '1'
/** Number of such payments that fit in 24 hours. */
const SMALL_PER_DAY = 5n
/**
 * Factor for fees of the past: the signer nodes count the largest fee that a transaction may have,
 * and the history contains the expected one.
 */
const FEE_FACTOR = 2n

type Amounts = Map<string, bigint>

const add = (sums: Amounts, asset: string, amount: bigint): void => {
  sums.set(asset, (sums.get(asset) ?? 0n) + amount)
}

const raise = (largest: Amounts, asset: string, amount: bigint): void => {
  if (amount > (largest.get(asset) ?? -1n)) largest.set(asset, amount)
}

/** Returns what an act adds to a window. */
function outflow(registry: PolicyRegistry, { act }: PastAct): Amounts {
  const sums: Amounts = new Map([[act.asset, act.amount]])
  // Fees count in windows, also those that a gas tank pays, because the window names their coins.
  const asset = registry.asset(act.asset)
  if (asset) add(sums, asset.fee_asset, act.fee.max * FEE_FACTOR)
  return sums
}

/** Returns for each asset the largest sum in 24 hours. */
function largestDays(registry: PolicyRegistry, acts: readonly PastAct[]): Amounts {
  const [largest, sums]: [Amounts, Amounts] = [new Map(), new Map()]
  const sorted = acts.toSorted((a, b) => a.at_s - b.at_s)
  let oldest = 0
  for (const each of sorted) {
    for (const [asset, amount] of outflow(registry, each)) add(sums, asset, amount)
    for (; ; oldest++) {
      const first = sorted[oldest]
      if (!first || each.at_s - first.at_s <= HOURS * 3600 + LIMITS.windowSlackS) break
      for (const [asset, amount] of outflow(registry, first)) add(sums, asset, -amount)
    }
    for (const [asset, amount] of sums) raise(largest, asset, amount)
  }
  return largest
}

/** Rounds up to two significant digits. */
function rounded(amount: bigint): bigint {
  const unit = 10n ** BigInt(Math.max(0, amount.toString().length - 2))
  return ((amount + unit - 1n) / unit) * unit
}

/** Limit of a single payment without a history, in the smallest unit. */
function smallOf(registry: PolicyRegistry, name: string): bigint {
  const text = SMALL[name] ?? (/^(USDT|USDC)_/.test(name) ? SMALL_STABLE : SMALL_OTHER)
  return parseUnits(text, registry.asset(name)?.decimals ?? 0, name)
}

/** Limits of single payments and of 24 hours, of assets that were not paid yet. */
function defaults(registry: PolicyRegistry, assets: readonly string[]): [Amounts, Amounts] {
  const [single, daily]: [Amounts, Amounts] = [new Map(), new Map()]
  for (const name of assets) {
    single.set(name, smallOf(registry, name))
    daily.set(name, smallOf(registry, name) * SMALL_PER_DAY)
  }
  // Fees count in the window too.
  const coins = new Set(assets.flatMap((name) => registry.asset(name)?.fee_asset ?? []))
  for (const coin of coins) add(daily, coin, smallOf(registry, coin))
  return [single, daily]
}

/** Returns the rule for the standing rules that exist; empty if there is none. */
function forwardRules(registry: PolicyRegistry, forwards: readonly Act[]): Rule[] {
  if (forwards.length === 0) return []
  const largest: Amounts = new Map()
  const addresses = new Map<string, { network: string; address: string; tag?: string }>()
  for (const { asset, network, to, standing } of forwards) {
    raise(largest, asset, standing?.daily_cap ?? 0n)
    const { address, tag } = to
    const entry = { network, address, ...(tag === null ? {} : { tag }) }
    addresses.set(JSON.stringify(entry), entry)
  }
  return [
    {
      id: 'forwards',
      effect: 'allow',
      match: {
        action: ['forward'],
        assets: [...largest.keys()].sort(),
        to: { addresses: [...addresses.values()] },
      },
      amount: {
        max: Object.fromEntries(
          [...largest].map(([name, amount]) => [
            name,
            formatUnits(amount, registry.asset(name)?.decimals ?? 0),
          ]),
        ),
      },
    },
  ]
}

/**
 * Returns the rule for usual payments, the one for all others, which requires approvals, and the one
 * for forwards.
 */
function rulesOf(
  { registry, acts, forwards, assets }: DraftParts,
  approvals: PolicyDocument['change']['approvals'],
): Rule[] {
  const known = assets.filter((name) => registry.asset(name) !== undefined)
  const [single, daily] = defaults(registry, acts.length > 0 ? [] : known)
  for (const { act } of acts) raise(single, act.asset, act.amount)
  for (const [asset, amount] of largestDays(registry, acts)) raise(daily, asset, amount)
  const textOf = (amounts: Amounts) =>
    Object.fromEntries(
      [...amounts]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, amount]) => [
          name,
          formatUnits(rounded(amount), registry.asset(name)?.decimals ?? 0),
        ]),
    )
  const action: ('transfer' | 'refund')[] = ['transfer', 'refund']
  const all = [...new Set([...known, ...single.keys()])].sort()
  if (all.length === 0) return forwardRules(registry, forwards)
  return [
    {
      id: 'usual',
      effect: 'allow',
      match: { action, assets: [...single.keys()].sort(), to: 'any' },
      amount: { max: textOf(single) },
      windows: [{ name: 'day', hours: HOURS, per: 'workspace', max: textOf(daily), share: '1' }],
    },
    { id: 'large', effect: 'allow', match: { action, assets: all, to: 'any' }, approvals },
    ...forwardRules(registry, forwards),
  ]
}

/** Machines that own the API keys, so that the approvals of their owners are not missing. */
function machinesOf(apiKeys: readonly string[]): Person[] {
  const machines: Person[] = []
  for (let at = 0; at < apiKeys.length; at += LIMITS.apiKeysOfPerson) {
    const id = machines.length === 0 ? 'backend' : `backend-${machines.length + 1}`
    machines.push({
      id,
      name: 'Back end that sends requests',
      machine: true,
      api_keys: apiKeys.slice(at, at + LIMITS.apiKeysOfPerson),
      keys: [],
    })
  }
  return machines
}

/** Returns the approvals of large payments in a document: of its rule of that name, or of another one. */
function approvalsOf({ rules, change }: PolicyDocument): PolicyDocument['change']['approvals'] {
  const ways = rules.flatMap((rule) =>
    rule.effect === 'allow' && rule.approvals ? [{ id: rule.id, approvals: rule.approvals }] : [],
  )
  const way = ways.find(({ id }) => id === 'large') ?? ways[0]
  return way?.approvals ?? change.approvals
}

/**
 * Drafts a document that would have allowed the past transfers, and that allows the existing standing
 * rules. Without a history, it allows small payments with a daily limit, and larger ones with
 * approvals. The first document has texts in place of public keys, so it is not valid until they are
 * filled in. A later one keeps everything of the document in force except its ways through (rules
 * with the effect `allow`).
 */
export function draftDocument(parts: DraftParts): PolicyDocument {
  const { place, previous, apiKeys } = parts
  if (previous !== null) {
    const { document, hash } = previous
    // What restricts stays; the ways through are drafted again.
    const restrictions = document.rules.filter(({ effect }) => effect !== 'allow')
    const rules = [...rulesOf(parts, approvalsOf(document)), ...restrictions]
    return { ...document, number: document.number + 1, previous: hash, rules }
  }
  const approvals = [{ group: 'treasury', k: 2 }]
  const admins = [{ group: 'admins', k: 2 }]
  return {
    kind: 'custody-policy',
    v: 1,
    mode: place.mode,
    workspace: place.workspace,
    number: 1,
    previous: '0'.repeat(64),
    nodes: place.nodes,
    people: [
      ...PEOPLE.map((id, at) => ({
        id,
        name: `Person ${at + 1}`,
        api_keys: [],
        keys: [{ id: 'k1', kind: 'key' as const, alg: 'Ed25519' as const, spki: spkiOf(id) }],
      })),
      ...machinesOf(apiKeys),
    ],
    groups: { admins: PEOPLE, treasury: PEOPLE },
    change: { approvals: admins, delay_s: DELAY_S, veto: 'admins' },
    stop: { group: 'admins' },
    resume: { approvals: admins },
    rules: rulesOf(parts, approvals),
  }
}

/** Returns what a person must fill in before the draft is valid. */
export function toFillIn({ people }: PolicyDocument): string[] {
  return people.flatMap(({ id, keys }, at) =>
    keys.flatMap(({ spki }, key) =>
      spki === spkiOf(id)
        ? [
            `people[${at}].keys[${key}].spki: the public key of ${id}, as "custody keygen" prints it`,
          ]
        : [],
    ),
  )
}
