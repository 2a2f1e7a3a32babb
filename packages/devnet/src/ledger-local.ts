import { LedgerChain, SECONDS_MAX } from './ledger-chain.ts'
import type { FundExtra, Head } from './local-chain.ts'
import { LazyChain } from './lazy-chain.ts'
import { secondsOf } from './whole-number.ts'

/** A chain whose blocks are the ledgers of a LedgerChain. */
export class OfLedgers<Account, Tx extends { hash: string; raw: string }, Outcome> {
  readonly ledgers: LedgerChain<Account, Tx, Outcome>

  constructor(ledgers: LedgerChain<Account, Tx, Outcome>) {
    this.ledgers = ledgers
  }

  get head(): Head {
    const { index, hash } = this.ledgers.head
    return { height: index, hash }
  }

  close(): void {
    this.ledgers.stop()
  }

  mine(count: number, seconds: number): Head {
    this.ledgers.mine(count, seconds)
    return this.head
  }
}

/** Functions of {@link OfLedgers} that a local chain needs, whatever the type of its accounts. */
interface Ledgered {
  head: Head
  ledgers: { waiting: readonly unknown[] }
  close: () => void
  mine: (count: number, seconds: number) => Head
}

/**
 * Common part of local chains of ledgers, whatever their protocol: ledgers are final, and deposits
 * may have a tag.
 */
export abstract class LocalLedgers<Chain extends Ledgered> extends LazyChain<Chain> {
  readonly engine = 'own ledger'
  override readonly fundExtras: readonly FundExtra[] = ['tag']

  protected headOf({ head }: Chain): Head {
    return head
  }

  protected waitingIn({ ledgers }: Chain): number {
    return ledgers.waiting.length
  }

  protected override get finality(): string {
    return 'its validated ledgers are final'
  }

  async mine(blocks: number, { seconds }: { seconds: unknown }): Promise<Head> {
    return (await this.chain()).mine(blocks, secondsOf(seconds, SECONDS_MAX))
  }
}
