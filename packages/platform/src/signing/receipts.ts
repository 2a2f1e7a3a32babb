import { RECEIPTS_MAX, type SignedRequest } from '@custody/request-auth'
import { Batch } from '../batch.ts'
import { pressureOf } from '../pressure.ts'
import type { Signing } from './signing.ts'
import type { SignerNodes } from './nodes.ts'

const RECEIPT_TIMEOUT_MS = 5000
/** Calls to one node under way. */
const SHOWING_MAX = 2
const STORED_MAX = 100
/** Nobody waits for receipts: so long they are gathered, and longer while requests want the processor. */
const GATHERED_MS = 20
const GATHERED_MS_MAX = 1000

type Table = 'transactions' | 'replacements'
interface Shown { request: SignedRequest; until: number }
interface Kept { table: Table; id: string; receipts: unknown[] }
type Desk = { show(node: number, request: SignedRequest): Promise<unknown>; keep(kept: Kept): Promise<void> }

const desks = new WeakMap<SignerNodes, Desk>()

/** Shows a request to all nodes and keeps their signed receipts with what it asked for. Failures are only logged. */
export async function collectReceipts(services: Signing, id: string, request: SignedRequest, table: Table = 'transactions'): Promise<void> {
  let desk = desks.get(services.signers)
  if (!desk) desks.set(services.signers, desk = openDesk(services))
  const { show, keep } = desk
  const answers = await Promise.allSettled(services.signers.peers.map(({ node }) => show(node, request)))
  const receipts = answers.flatMap((answer) => (answer.status === 'fulfilled' && answer.value !== null ? [answer.value] : []))
  try {
    if (receipts.length > 0) await keep({ table, id, receipts })
  } catch (error) {
    services.log.warn({ err: error, [table]: id }, 'receipts were not stored')
  }
}

/** Requests that come at the same time are shown to a node by one call, and their receipts stored by one statement. */
function openDesk(services: Signing): Desk {
  const { signers, environment } = services
  const pause = () => environment.sleep(pressureOf(services).isHigh ? GATHERED_MS_MAX : GATHERED_MS)
  const nodes = new Map(signers.peers.map(({ node }) => [node, new Batch<Shown, unknown>(async (shown) => {
    // What has waited too long behind a node that hangs is not shown to it any more: nobody would wait for its answer.
    const live = shown.filter(({ until }) => environment.now() < until)
    if (live.length === 0) return shown.map(() => null)
    const { answers } = await signers.call<{ answers: { status: number; body: unknown }[] }>(
      node, 'POST', '/receipts', { requests: live.map(({ request }) => request) }, RECEIPT_TIMEOUT_MS)
    const told = new Map(live.map((each, at) => [each, answers[at]]))
    return shown.map((each) => {
      const answer = told.get(each)
      return answer?.status === 200 ? answer.body : null
    })
  }, { most: RECEIPTS_MAX, lanes: SHOWING_MAX, pause })]))
  const store = new Batch<Kept, null>(async (all) => {
    for (const table of ['transactions', 'replacements'] as const) {
      await keepAll(services, table, all.filter((each) => each.table === table))
    }
    return all.map(() => null)
  }, { most: STORED_MAX, lanes: 1, pause })
  return {
    show: async (node, request) => nodes.get(node)?.ask({ request, until: environment.now() + RECEIPT_TIMEOUT_MS }) ?? null,
    keep: async (kept) => void await store.ask(kept),
  }
}

/** A row that somebody holds is written alone: held together they could be waited for in a circle. */
async function keepAll({ database }: Signing, table: Table, all: readonly Kept[]): Promise<void> {
  if (all.length === 0) return
  const written = all.length === 1 ? [] : await database.query<{ id: string }>(
    `with free as (select id from ${table} where id = any($1::uuid[]) order by id for update skip locked)
     update ${table} t set receipts = k.receipts from free, unnest($1::uuid[], $2::jsonb[]) k(id, receipts)
     where t.id = free.id and k.id = free.id returning t.id`,
    [all.map(({ id }) => id), all.map(({ receipts }) => JSON.stringify(receipts))])
  const ids = new Set(written.map(({ id }) => id))
  for (const { id, receipts } of all.filter((each) => !ids.has(each.id))) {
    await database.query(`update ${table} set receipts = $2 where id = $1`, [id, JSON.stringify(receipts)])
  }
}
