import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FAMILIES } from '../src/devnet.ts'
import { answerOf, type HttpAnswer, type ReceivedRequest } from '../src/http-server.ts'
import type { Head, LocalChain } from '../src/local-chain.ts'
import type { Timing } from '../src/timing.ts'

/**
 * A moment of a local chain: its height, and how much of its journal was written. A journal is only
 * appended to, also by a reorganisation, so its beginning is the chain as it stood at that moment.
 */
export interface Moment {
  height: number
  journalBytes: number
}

/** Names of the journals of blocks; each chain has one of them. */
const JOURNALS = ['blocks.journal', 'ledgers.journal']

/** Returns the path of a chain's journal in the home of the local chains. */
function journalOf(home: string, code: string): string {
  const paths = JOURNALS.map((name) => join(home, code.toLowerCase(), name))
  const path = paths.find((each) => existsSync(each))
  if (path === undefined) throw new Error(`${code} has no journal of blocks in ${home}`)
  return path
}

/**
 * Returns the present moment of a chain.
 * @param home folder of the local chains
 */
export async function momentOf(home: string, chain: LocalChain): Promise<Moment> {
  await chain.start()
  const { head } = await chain.info()
  if (!head) throw new Error(`${chain.code} has no head`)
  return { height: head.height, journalBytes: statSync(journalOf(home, chain.code)).size }
}

/**
 * A node of a local chain that stands at an earlier moment, as a node that is behind, syncing or
 * back from a crash. It is the same chain, opened with the beginning of the journal, and answers
 * every request about that state: blocks, receipts, balances, nonces, coins and an empty mempool.
 */
export class PastNode {
  readonly moment: Moment
  readonly #chain: LocalChain
  readonly #home: string

  private constructor(moment: Moment, chain: LocalChain, home: string) {
    this.moment = moment
    this.#chain = chain
    this.#home = home
  }

  /**
   * Opens a node.
   * @param o.source folder of the local chains
   * @param o.home folder of the node, which is deleted when it closes
   */
  static async open(
    code: string,
    moment: Moment,
    { source, home, timing }: { source: string; home: string; timing: Timing },
  ): Promise<PastNode> {
    const path = journalOf(source, code)
    const folder = join(home, code.toLowerCase())
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const name = path.slice(path.lastIndexOf('/') + 1)
    writeFileSync(join(folder, name), readFileSync(path).subarray(0, moment.journalBytes))
    const chain = FAMILIES.flatMap((family) => family({ home, timing })).find(
      (each) => each.code === code,
    )
    if (!chain) throw new Error(`there is no local chain ${code}`)
    await chain.start()
    return new PastNode(moment, chain, home)
  }

  /** Returns the response to a request, as {@link Devnet.answer} does. */
  answer(request: ReceivedRequest): Promise<HttpAnswer | 'cut' | 'streamed'> {
    const { path } = this.#chain
    return answerOf(
      {
        apiAt: async (at) =>
          at === path || at.startsWith(`${path}/`)
            ? this.#chain.apiAt(at.slice(path.length), `http://past${path}`)
            : undefined,
        control: async () => undefined,
        outside: () => null,
      },
      request,
    )
  }

  /** Number of transactions in the mempool. */
  async waiting(): Promise<number> {
    return (await this.#chain.info()).waiting ?? 0
  }

  /** Makes blocks of its own, which the other nodes of the chain do not have. */
  mine(blocks: number): Promise<Head> {
    return this.#chain.mine(blocks, { address: undefined, seconds: undefined })
  }

  close(): void {
    this.#chain.close()
    rmSync(this.#home, { recursive: true, force: true })
  }
}
