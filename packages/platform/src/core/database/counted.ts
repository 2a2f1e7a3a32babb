import type { Queryable } from './pool.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/**
 * Maximum number of rows that are read in list order to return a page. If more would be needed, the
 * page is located by the counts.
 */
const WALK_MAX = 2000

/**
 * Lists whose lengths are maintained (`migrations/019_list_counts.sql`): tables with `created_at`
 * and `id`.
 */
type CountedList =
  | 'transactions'
  | 'invoices'
  | 'orders'
  | 'exchange_transfers'
  | 'webhook_deliveries'

/** A query of a list. */
export interface ListQuestion {
  list: CountedList
  columns: string
  /** The complete SQL condition and its values; the first value is the owner of the list. */
  where: string
  values: readonly unknown[]
  /**
   * The same condition by columns for which counts are maintained: equal to a value, or one of
   * several. Null: the condition uses other columns too.
   */
  filters: Readonly<Record<string, string | readonly string[]>> | null
  /** Range of creation times in `where`: `from` inclusive, `before` exclusive. */
  from: Date | null
  before: Date | null
  /** The counted column that comes after the owner and before the time in an index. */
  indexed?: string
}

/** Returns the entries whose value is defined. */
export const input = (
  request: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string | readonly string[]> =>
  Object.fromEntries(
    Object.entries(request).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  )

/** Converts Unix seconds to a date; null if undefined. */
export const dateOf = (seconds: number | undefined): Date | null =>
  seconds === undefined ? null : new Date(seconds * 1000)

/** Range of buckets, in milliseconds: `from` inclusive, `to` exclusive; null: unbounded. */
interface Span {
  level: 0 | 1 | 2
  from: number | null
  to: number | null
}
interface Bucket {
  from: Date
  to: Date
  n: number
}

const dayOf = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS
const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS
const date = (ms: number | null): Date | null => (ms === null ? null : new Date(ms))

/** Parameter values of a statement, each added when its placeholder is written. */
class Values {
  readonly list: unknown[]
  constructor(first: readonly unknown[] = []) {
    this.list = [...first]
  }

  at(value: unknown, type: string): string {
    this.list.push(value)
    return `$${this.list.length}::${type}`
  }
}

/**
 * Returns the smallest set of whole buckets that covers a range. Empty if the range contains no
 * whole hour.
 */
function spansWithin(from: number | null, to: number | null): Span[] {
  if (from === null && to === null) return [{ level: 0, from, to }]
  if (from !== null && to !== null && from >= to) return []
  const firstDay = from === null ? null : dayOf(from + DAY_MS - 1)
  const lastDay = to === null ? null : dayOf(to)
  if (firstDay !== null && lastDay !== null && firstDay >= lastDay) return [{ level: 2, from, to }]
  const spans: Span[] = [{ level: 1, from: firstDay, to: lastDay }]
  if (from !== firstDay) spans.push({ level: 2, from, to: firstDay })
  if (to !== lastDay) spans.push({ level: 2, from: lastDay, to })
  return spans
}

function keptCondition(
  filters: Readonly<Record<string, string | readonly string[]>>,
  values: Values,
): string {
  const terms = Object.entries(filters).map(([name, value]) =>
    typeof value === 'string'
      ? `dims->>'${name}' = ${values.at(value, 'text')}`
      : `dims->>'${name}' = any(${values.at(value, 'text[]')})`,
  )
  return terms.length === 0 ? 'true' : terms.join(' and ')
}

/**
 * Returns an SQL query for rows (bucket, dims, n) of the counts, and of the changes that are not
 * added to them yet. `hour`: SQL expression for the bucket of the changes.
 */
function countsOf(
  { list, values: [owner] }: ListQuestion,
  spans: readonly Span[],
  values: Values,
  hour = 'bucket',
): string {
  const of = `list = ${values.at(list, 'text')} and owner = ${values.at(owner, 'uuid')}`
  const bounds = ({ from, to }: Omit<Span, 'level'>): string =>
    [
      ...(from === null ? [] : [` and bucket >= ${values.at(date(from), 'timestamptz')}`]),
      ...(to === null ? [] : [` and bucket < ${values.at(date(to), 'timestamptz')}`]),
    ].join('')
  const ends = (pick: (span: Span) => number | null): (number | null)[] => spans.map(pick)
  const least = ends(({ from }) => from).reduce((a, b) =>
    a === null || b === null ? null : Math.min(a, b),
  )
  const most = ends(({ to }) => to).reduce((a, b) =>
    a === null || b === null ? null : Math.max(a, b),
  )
  return [
    ...spans.map(
      (span) =>
        `select bucket, dims, n from list_counts where ${of}
          and level = ${span.level}${bounds(span)}`,
    ),
    `select ${hour}, dims, n from list_deltas where ${of}${bounds({ from: least, to: most })}`,
  ].join(' union all ')
}

/**
 * Returns the exact number of rows. `walked`: approximate number of index entries that a scan of
 * the list's index reads to find them all.
 */
async function totalOf(
  database: Queryable,
  question: ListQuestion,
): Promise<{ total: number; walked: number }> {
  const { list, where, filters, from, before, indexed } = question
  const first = from === null ? null : hourOf(from.getTime()) + HOUR_MS
  const end = before === null ? null : hourOf(before.getTime())
  const spans = filters === null ? [] : spansWithin(first, end)
  if (filters === null || spans.length === 0) {
    const row = await database.one<{ total: string }>(
      `select count(*)::text total from ${list} where ${where}`,
      question.values,
    )
    return { total: Number(row?.total), walked: Number(row?.total) }
  }
  const values = new Values(from === null && before === null ? [] : question.values)
  const walk = Object.fromEntries(Object.entries(filters).filter(([name]) => name === indexed))
  // Partial hours at both ends of the range are counted in the list itself.
  const edges = [
    ...(first === null ? [] : [`created_at < ${values.at(date(first), 'timestamptz')}`]),
    ...(end === null ? [] : [`created_at >= ${values.at(date(end), 'timestamptz')}`]),
  ]
    .map((edge) => ` + (select count(*) from ${list} where ${where} and ${edge})`)
    .join('')
  const row = await database.one<{ total: string; walked: string }>(
    `select (coalesce(sum(n) filter (where ${keptCondition(filters, values)}),
       0)${edges})::text total,
       coalesce(sum(n) filter (where ${keptCondition(walk, values)}), 0)::text walked
     from (${countsOf(question, spans, values)}) c`,
    values.list,
  )
  return { total: Number(row?.total), walked: Number(row?.walked) }
}

/**
 * Returns those days before `before` (null: all days), newest first, that contain rows between the
 * positions `skip` and `end` of the list.
 */
async function daysOf(
  database: Queryable,
  question: ListQuestion,
  before: number | null,
  { skip, end }: { skip: number; end: number },
): Promise<{ day: Date; ahead: number }[]> {
  const values = new Values()
  const counts = countsOf(
    question,
    [{ level: 1, from: null, to: before }],
    values,
    `date_trunc('day', bucket, 'UTC')`,
  )
  const rows = await database.query<{ day: Date; ahead: string }>(
    `with days as (
       select bucket, sum(n) n from (${counts}) c
       where ${keptCondition(question.filters ?? {}, values)} group by bucket having sum(n) > 0
     ), places as (select bucket, n, sum(n) over (order by bucket desc) - n ahead from days)
     select bucket "day", ahead::text from places
     where ahead < ${values.at(end, 'bigint')} and ahead + n > ${values.at(skip, 'bigint')}
       order by bucket desc`,
    values.list,
  )
  return rows.map(({ day, ahead }) => ({ day, ahead: Number(ahead) }))
}

/**
 * Returns the hours of some days that contain rows, newest first; only those before `end`, if it is
 * set.
 */
async function hoursOf(
  database: Queryable,
  question: ListQuestion,
  days: readonly Date[],
  end: number | null = null,
): Promise<Bucket[]> {
  const values = new Values()
  const of = `list = ${values.at(question.list, 'text')} and owner = ${values.at(question.values[0], 'uuid')}`
  const until = end === null ? '' : ` and bucket < ${values.at(date(end), 'timestamptz')}`
  const within = `bucket >= "day" and bucket < "day" + interval '24 hours'${until}`
  const rows = await database.query<{ bucket: Date; n: string }>(
    `select bucket, sum(n)::text n from unnest(${values.at(days, 'timestamptz[]')}) "day"
       cross join lateral (
       select bucket, dims, n from list_counts where ${of} and level = 2 and ${within}
       union all select bucket, dims, n from list_deltas where ${of} and ${within}) c
     where ${keptCondition(question.filters ?? {}, values)} group by bucket having sum(n) > 0
       order by bucket desc`,
    values.list,
  )
  return rows.map(({ bucket, n }) => ({
    from: bucket,
    to: new Date(bucket.getTime() + HOUR_MS),
    n: Number(n),
  }))
}

/**
 * Returns the hours that contain a page, newest first, and the number of rows before the page in
 * the first of them.
 */
async function placeOf(
  database: Queryable,
  question: ListQuestion,
  skip: number,
  limit: number,
): Promise<{ hours: Bucket[]; skip: number }> {
  const { list, where, before } = question
  const newest: Bucket[] = []
  let lastDay: number | null = null
  if (before !== null) {
    // The last day of the range is partial: the rows after its last whole hour are counted here,
    // the whole hours below.
    const end = hourOf(before.getTime())
    lastDay = dayOf(end)
    const values = new Values(question.values)
    const part = await database.one<{ n: string }>(
      `select count(*)::text n from ${list} where ${where}
        and created_at >= ${values.at(date(end), 'timestamptz')}`,
      values.list,
    )
    newest.push(
      { from: new Date(end), to: before, n: Number(part?.n) },
      ...(await hoursOf(database, question, [new Date(lastDay)], end)),
    )
  }
  const ahead = newest.reduce((sum, { n }) => sum + n, 0)
  const days =
    ahead < skip + limit
      ? await daysOf(database, question, lastDay, {
          skip: Math.max(0, skip - ahead),
          end: skip + limit - ahead,
        })
      : []
  const hours =
    days.length === 0
      ? []
      : await hoursOf(
          database,
          question,
          days.map(({ day }) => day),
        )
  // Number of rows of the partial day and of whole days that come before the page.
  const passed = days[0]?.ahead ? ahead + days[0].ahead : 0
  return within([...(passed > 0 ? [] : newest), ...hours], skip - passed, limit)
}

/** Returns those hours that contain the page. */
function within(
  all: readonly Bucket[],
  skip: number,
  limit: number,
): { hours: Bucket[]; skip: number } {
  const hours: Bucket[] = []
  let ahead = 0
  let passed = 0
  for (const hour of all) {
    if (ahead + hour.n <= skip) passed += hour.n
    else if (ahead < skip + limit) hours.push(hour)
    ahead += hour.n
  }
  return { hours, skip: skip - passed }
}

/**
 * Returns a page of a list, newest first, and the exact length of the whole list. If the condition
 * only uses counted columns and times, the cost does not grow with the list; otherwise the rows are
 * counted one by one, by index.
 * @param page page number, starting with 1
 */
export async function readList<Row>(
  database: Queryable,
  question: ListQuestion,
  page: number,
  limit: number,
  walkMax = WALK_MAX,
): Promise<{ rows: Row[]; total: number }> {
  const { list, columns, where, values, filters } = question
  const skip = (page - 1) * limit
  const plain = (): Promise<Row[]> =>
    database.query<Row>(
      `select ${columns} from ${list} where ${where} order by created_at desc, id desc
     limit $${values.length + 1} offset $${values.length + 2}`,
      [...values, limit, skip],
    )
  if (filters === null) {
    const [rows, { total }] = await Promise.all([plain(), totalOf(database, question)])
    return { rows, total }
  }
  const { total, walked } = await totalOf(database, question)
  if (total <= skip) return { rows: [], total }
  const needed = skip + limit >= total ? walked : (skip + limit) * (walked / total)
  if (needed <= walkMax) return { rows: await plain(), total }
  const place = await placeOf(database, question, skip, limit)
  const all = new Values(values)
  const rows = await database.query<Row>(
    `select shown.* from unnest(${all.at(
      place.hours.map(({ from }) => from),
      'timestamptz[]',
    )},
       ${all.at(
         place.hours.map(({ to }) => to),
         'timestamptz[]',
       )}) hour (hour_from, hour_to)
     cross join lateral (select ${columns} from ${list} where ${where} and created_at >= hour_from
       and created_at < hour_to
       order by created_at desc, id desc limit ${all.at(place.skip + limit, 'bigint')}) shown
     order by created_at desc, id desc
       limit ${all.at(limit, 'bigint')} offset ${all.at(place.skip, 'bigint')}`,
    all.list,
  )
  return { rows, total }
}
