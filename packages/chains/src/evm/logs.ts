import { RpcRefused, type JsonRpc } from '../rpc.ts'
import { isBloom, TRANSFER_TOPIC } from './bloom.ts'
import type { RpcBlock } from './rpc-types.ts'

/** Maximum number of blocks whose logs are read by one request. */
const TOGETHER_MAX = 10
/**
 * Number of logs at which a response may have been truncated silently. The lowest known limit is
 * 1000.
 */
const LOGS_MAX = 900
/**
 * Number of blocks that are queried one by one after an endpoint refused a range, before the next
 * range is tried.
 */
const REFUSED_BLOCKS = 1000

/**
 * `begun`: reads of blocks that had already begun. A request waits for those only; otherwise later
 * reads of blocks without logs could delay it indefinitely.
 */
interface PendingBlock {
  block: RpcBlock
  begun: number
  answer: (logs: unknown) => void
  fail: (error: unknown) => void
}

/**
 * Reads the Transfer logs of the given contracts block by block. Blocks that are read concurrently
 * are collected, and successive ones are queried by one range. A scan that catches up, or that
 * reads blocks of 200 ms every few seconds, sends a fraction of the requests. Logs by range can be
 * incomplete at the head without an error (EIP-234). So only blocks with a bloom filter, by which
 * the caller detects missing logs, are queried by range; in any doubt each block is queried by its
 * hash.
 */
export class TransferLogs {
  readonly #call: JsonRpc
  readonly #contracts: readonly string[]
  #gathered: PendingBlock[] = []
  /** Blocks that are being read: the numbers of their reads, the oldest first. */
  readonly #reading = new Set<number>()
  #begun = 0
  #isScheduled = false
  #aloneLeft = 0
  /**
   * Maximum number of blocks of one range, so that its response does not reach the truncation
   * limit.
   */
  #most = TOGETHER_MAX

  constructor(call: JsonRpc, contracts: readonly string[]) {
    this.#call = call
    this.#contracts = contracts
  }

  /**
   * Reads a block, whose logs may be queried next. The log requests of blocks that have been read
   * wait for it.
   */
  async whileReading<T>(read: () => Promise<T>): Promise<T> {
    const number = this.#begun++
    this.#reading.add(number)
    try {
      return await read()
    } finally {
      this.#reading.delete(number)
      this.#schedule()
    }
  }

  /**
   * Returns the unchecked response of `eth_getLogs` for a block.
   * @throws the errors of the JSON-RPC caller
   */
  of(block: RpcBlock): Promise<unknown> {
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#gathered.push({ block, begun: this.#begun, answer: resolve, fail: reject })
    })
    this.#schedule()
    return answer
  }

  /** Runs after all readers whose blocks have arrived: they query the logs immediately or never. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#ask()
    })
  }

  #ask(): void {
    const [oldest] = this.#reading
    const [first] = this.#gathered
    if (
      !first ||
      (oldest !== undefined && oldest < first.begun && this.#gathered.length < TOGETHER_MAX)
    )
      return
    const gathered = this.#gathered
    this.#gathered = []
    for (const run of runsOf(gathered, this.#aloneLeft > 0 ? 1 : this.#most)) void this.#askRun(run)
  }

  async #askRun(run: readonly PendingBlock[]): Promise<void> {
    const shown = run.length > 1 ? await this.#byRange(run) : null
    if (shown !== null) {
      for (const { block, answer } of run) answer(shown.get(block.hash) ?? [])
      return
    }
    this.#aloneLeft = Math.max(0, this.#aloneLeft - run.length)
    await Promise.all(
      run.map(({ block, answer, fail }) =>
        this.#logs({ blockHash: block.hash }).then(answer, fail),
      ),
    )
  }

  /** Returns logs by the hash of their block; null if they must be queried block by block. */
  async #byRange(run: readonly PendingBlock[]): Promise<Map<string, unknown[]> | null> {
    const [first, last] = [run[0], run.at(-1)] as [PendingBlock, PendingBlock]
    let logs: unknown
    try {
      logs = await this.#logs({ fromBlock: first.block.number, toBlock: last.block.number })
    } catch (error) {
      if (error instanceof RpcRefused) this.#aloneLeft = REFUSED_BLOCKS
      return null
    }
    if (!Array.isArray(logs)) return null
    if (logs.length >= LOGS_MAX) {
      this.#most = Math.max(2, Math.floor(run.length / 2))
      return null
    }
    if (run.length === this.#most && logs.length < LOGS_MAX / 2)
      this.#most = Math.min(TOGETHER_MAX, this.#most + 1)
    const byBlock = new Map<string, unknown[]>(run.map(({ block }) => [block.hash, []]))
    for (const log of logs as ({ blockHash?: unknown } | null)[]) {
      const of = byBlock.get(String(log?.blockHash))
      // A log of another block, or without one: the endpoint is on another branch, or does not name
      // the block.
      if (!of) return null
      of.push(log)
    }
    return byBlock
  }

  #logs(where: Record<string, string>): Promise<unknown> {
    return this.#call<unknown>('eth_getLogs', [
      { ...where, address: this.#contracts, topics: [TRANSFER_TOPIC] },
    ])
  }
}

/**
 * Splits the requests into runs of successive blocks, in their order. A block without a bloom
 * filter is a run of its own.
 */
function runsOf(requests: readonly PendingBlock[], most: number): PendingBlock[][] {
  const runs: PendingBlock[][] = []
  for (const each of [...requests].sort(
    (a, b) => Number(a.block.number) - Number(b.block.number),
  )) {
    const run = runs.at(-1)
    const before = run?.at(-1)
    const follows =
      before !== undefined &&
      each.block.parentHash === before.block.hash &&
      isBloom(each.block.logsBloom) &&
      isBloom(before.block.logsBloom)
    if (run && follows && run.length < most) run.push(each)
    else runs.push([each])
  }
  return runs
}
