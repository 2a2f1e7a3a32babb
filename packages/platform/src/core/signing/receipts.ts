import { RECEIPTS_MAX, type SignedRequest } from '@custody/request-auth'
import { Batch } from '../batch.ts'
import type { LoadMonitor } from '../load-monitor.ts'
import type { Signing } from './signing.ts'

const RECEIPT_TIMEOUT_MS = 5000
/** Maximum number of concurrent calls to one node. */
const SHOWING_MAX = 2
const STORED_MAX = 100
/**
 * Milliseconds for which requests are collected into one call; nothing waits for receipts. The
 * longer time applies while requests need the processor.
 */
const GATHERED_MS = 20
const GATHERED_MS_MAX = 1000

type Table = 'transactions' | 'replacements'
interface SubmittedRequest {
  request: SignedRequest
  until: number
}
interface StoredReceipts {
  table: Table
  workspace: string
  id: string
  receipts: unknown[]
}

/** Dependencies for collecting receipts. */
type Parts = Pick<Signing, 'signers' | 'environment' | 'database' | 'log'> & {
  pressure: LoadMonitor
}

/**
 * Collects receipts from the signer nodes. Concurrent requests are sent to a node in one call, and
 * their receipts are stored by one statement.
 */
export class Receipts {
  readonly #parts: Parts
  readonly #nodes = new Map<number, Batch<SubmittedRequest, unknown>>()
  readonly #store: Batch<StoredReceipts, null>

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
   * Sends a request to all nodes and stores their signed receipts with the transaction or
   * replacement that it created. Failures are only logged.
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
      log.warn({ err: error, [table]: id }, 'the receipts of the signer nodes could not be stored')
    }
  }

  #pause = (): Promise<void> =>
    this.#parts.environment.sleep(this.#parts.pressure.isHigh ? GATHERED_MS_MAX : GATHERED_MS)

  #desk(node: number): Batch<SubmittedRequest, unknown> {
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

  async #show(node: number, shown: readonly SubmittedRequest[]): Promise<unknown[]> {
    const { signers, environment } = this.#parts
    // Requests that have waited too long behind a slow node are no longer sent to it, because their
    // callers have stopped waiting.
    const live = shown.filter(({ until }) => environment.now() < until)
    if (live.length === 0) return shown.map(() => null)
    const { answers } = await signers.call<{ answers: { status: number; body: unknown }[] }>(
      node,
      'POST',
      '/receipts',
      { requests: live.map(({ request }) => request) },
      RECEIPT_TIMEOUT_MS,
    )
    const results = new Map(live.map((each, at) => [each, answers[at]]))
    return shown.map((each) => {
      const answer = results.get(each)
      return answer?.status === 200 ? answer.body : null
    })
  }
}

/**
 * Stores receipts. Rows that are locked by another transaction are written one by one, because
 * writing them together could cause a deadlock.
 */
async function keepAll(
  { database }: Parts,
  table: Table,
  all: readonly StoredReceipts[],
): Promise<void> {
  if (all.length === 0) return
  const written =
    all.length === 1
      ? []
      : await database.query<{ id: string }>(
          `with free as (
       select t.workspace_id, t.id, k.receipts
         from unnest($3::uuid[], $1::uuid[], $2::jsonb[]) k(workspace_id, id, receipts)
       join ${table} t on t.workspace_id = k.workspace_id and t.id = k.id order by t.id
         for update of t skip locked
     ) update ${table} t set receipts = free.receipts from free
       where t.workspace_id = free.workspace_id and t.id = free.id returning t.id`,
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
