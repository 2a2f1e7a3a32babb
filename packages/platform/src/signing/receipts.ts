import { RECEIPTS_MAX, type SignedRequest } from '@custody/request-auth'
import { Batch } from '../batch.ts'
import type { LoadMonitor } from '../load-monitor.ts'
import type { Signing } from './signing.ts'

const RECEIPT_TIMEOUT_MS = 5000
/** Calls to one node under way. */
const SHOWING_MAX = 2
const STORED_MAX = 100
/**
 * Nobody waits for receipts: so long they are gathered, and longer while requests want the
 * processor.
 */
const GATHERED_MS = 20
const GATHERED_MS_MAX = 1000

type Table = 'transactions' | 'replacements'
interface Shown {
  request: SignedRequest
  until: number
}
interface Kept {
  table: Table
  workspace: string
  id: string
  receipts: unknown[]
}

/** What collecting receipts needs of the platform. */
type Parts = Pick<Signing, 'signers' | 'environment' | 'database' | 'log'> & {
  pressure: LoadMonitor
}

/**
 * Requests that come at the same time are shown to a node by one call, and their receipts stored by
 * one statement.
 */
export class Receipts {
  readonly #parts: Parts
  readonly #nodes = new Map<number, Batch<Shown, unknown>>()
  readonly #store: Batch<Kept, null>

  constructor(parts: Parts) {
    this.#parts = parts
    this.#store = new Batch(
      async (all) => {
        for (const table of ['transactions', 'replacements'] as const)
          await keepAll(
            parts,
            table,
            all.filter((each) => each.table === table),
          )
        return all.map(() => null)
      },
      { most: STORED_MAX, lanes: 1, pause: this.#pause },
    )
  }

  /**
   * Shows a request to all nodes and keeps their signed receipts with what it asked for. Failures
   * are only logged.
   */
  async collect(
    workspace: string,
    id: string,
    request: SignedRequest,
    table: Table = 'transactions',
  ): Promise<void> {
    const { signers, environment, log } = this.#parts
    const until = environment.now() + RECEIPT_TIMEOUT_MS
    const answers = await Promise.allSettled(
      signers.peers.map(({ node }) => this.#desk(node).ask({ request, until })),
    )
    const receipts = answers.flatMap((answer) =>
      answer.status === 'fulfilled' && answer.value !== null ? [answer.value] : [],
    )
    try {
      if (receipts.length > 0) await this.#store.ask({ table, workspace, id, receipts })
    } catch (error) {
      log.warn({ err: error, [table]: id }, 'receipts were not stored')
    }
  }

  #pause = (): Promise<void> =>
    this.#parts.environment.sleep(this.#parts.pressure.isHigh ? GATHERED_MS_MAX : GATHERED_MS)

  #desk(node: number): Batch<Shown, unknown> {
    let desk = this.#nodes.get(node)
    if (!desk) {
      desk = new Batch((shown) => this.#show(node, shown), {
        most: RECEIPTS_MAX,
        lanes: SHOWING_MAX,
        pause: this.#pause,
      })
      this.#nodes.set(node, desk)
    }
    return desk
  }

  async #show(node: number, shown: readonly Shown[]): Promise<unknown[]> {
    const { signers, environment } = this.#parts
    // What has waited too long behind a node that hangs is not shown to it any more: nobody would
    // wait for its answer.
    const live = shown.filter(({ until }) => environment.now() < until)
    if (live.length === 0) return shown.map(() => null)
    const { answers } = await signers.call<{ answers: { status: number; body: unknown }[] }>(
      node,
      'POST',
      '/receipts',
      { requests: live.map(({ request }) => request) },
      RECEIPT_TIMEOUT_MS,
    )
    const told = new Map(live.map((each, at) => [each, answers[at]]))
    return shown.map((each) => {
      const answer = told.get(each)
      return answer?.status === 200 ? answer.body : null
    })
  }
}

/**
 * A row that somebody holds is written alone: held together they could be waited for in a circle.
 */
async function keepAll({ database }: Parts, table: Table, all: readonly Kept[]): Promise<void> {
  if (all.length === 0) return
  const written =
    all.length === 1
      ? []
      : await database.query<{ id: string }>(
          `with free as (
       select t.workspace_id, t.id, k.receipts from unnest($3::uuid[], $1::uuid[], $2::jsonb[]) k(workspace_id, id, receipts)
       join ${table} t on t.workspace_id = k.workspace_id and t.id = k.id order by t.id for update of t skip locked
     ) update ${table} t set receipts = free.receipts from free where t.workspace_id = free.workspace_id and t.id = free.id returning t.id`,
          [
            all.map(({ id }) => id),
            all.map(({ receipts }) => JSON.stringify(receipts)),
            all.map(({ workspace }) => workspace),
          ],
        )
  const ids = new Set(written.map(({ id }) => id))
  for (const { workspace, id, receipts } of all.filter((each) => !ids.has(each.id))) {
    await database.query(`update ${table} set receipts = $2 where workspace_id = $3 and id = $1`, [
      id,
      JSON.stringify(receipts),
      workspace,
    ])
  }
}
