import { RpcRefused, type JsonRpc } from '../rpc.ts'
import { isBloom, TRANSFER_TOPIC } from './bloom.ts'
import type { RpcBlock } from './rpc-types.ts'

/** Blocks whose logs are asked for together. */
const TOGETHER_MAX = 10
/**
 * An answer of so many logs may have been cut short without a word: the least limit that is known
 * is 1000.
 */
const LOGS_MAX = 900
/** After a refused range so many blocks are asked for one by one, before the next is tried. */
const REFUSED_BLOCKS = 1000

/**
 * `begun`: reads of blocks that had begun before: it waits for those only, or others without logs
 * would keep it waiting.
 */
interface Asked {
  block: RpcBlock
  begun: number
  answer: (logs: unknown) => void
  fail: (error: unknown) => void
}

/**
 * The Transfer logs of some contracts, block by block as they were asked for. Blocks that are read
 * at the same time gather, and successive ones of them are asked for by one range: a scan that
 * catches up, or reads blocks of 200 ms every few seconds, asks a fraction of the questions. Logs
 * by range can be partial at the head with no error (EIP-234), so only blocks with a bloom are
 * asked for that way, by which the caller sees that a contract's logs are left out; any doubt asks
 * for each block by its hash.
 */
export class TransferLogs {
  readonly #call: JsonRpc
  readonly #contracts: readonly string[]
  #gathered: Asked[] = []
  /** Blocks that are being read: the numbers of their reads, the oldest first. */
  readonly #reading = new Set<number>()
  #begun = 0
  #isScheduled = false
  #aloneLeft = 0
  /** Blocks of one range, so that its answer is not one that may have been cut. */
  #most = TOGETHER_MAX

  constructor(call: JsonRpc, contracts: readonly string[]) {
    this.#call = call
    this.#contracts = contracts
  }

  /** Reads a block, whose logs may be asked for next: those of blocks at hand wait for it. */
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
   * What `eth_getLogs` answers for a block, unchecked. @throws what the caller of JSON-RPC throws
   */
  of(block: RpcBlock): Promise<unknown> {
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#gathered.push({ block, begun: this.#begun, answer: resolve, fail: reject })
    })
    this.#schedule()
    return answer
  }

  /** Behind all readers whose blocks have come, who ask for the logs at once or not at all. */
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

  async #askRun(run: readonly Asked[]): Promise<void> {
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

  /** Logs by the hash of their block; null: they are to be asked for block by block. */
  async #byRange(run: readonly Asked[]): Promise<Map<string, unknown[]> | null> {
    const [first, last] = [run[0], run.at(-1)] as [Asked, Asked]
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
      // A log of another block, or of none: the endpoint is on another branch, or does not say.
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

/** Runs of successive blocks, in their order; one without a bloom is a run of its own. */
function runsOf(asked: readonly Asked[], most: number): Asked[][] {
  const runs: Asked[][] = []
  for (const each of [...asked].sort((a, b) => Number(a.block.number) - Number(b.block.number))) {
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
