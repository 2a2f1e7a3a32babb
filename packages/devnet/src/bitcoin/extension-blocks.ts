import { randomBytes } from 'node:crypto'
import { sum, type Ledger } from './ledger.ts'
import { makeTx, type Tx, type TxOut } from './transaction.ts'

// Litecoin's extension blocks (MWEB), as far as a node shows them outside: transactions within them
// wait in its pool, and the last transaction of a block (HogEx) takes coins in and pays coins out.
// What is inside is not kept here.

/**
 * A witness program of 32 bytes with the version 8 or 9 (LIP-3): the coins of the extension blocks,
 * and an output that enters them.
 */
const HOG = 0x58
const PEG_IN = 0x59
const PROGRAM_BYTES = 32

const programOf = (version: number): Buffer =>
  Buffer.concat([Buffer.from([version, PROGRAM_BYTES]), randomBytes(PROGRAM_BYTES)])
const isProgram = (script: Buffer, version: number): boolean =>
  script.length === 2 + PROGRAM_BYTES && script[0] === version && script[1] === PROGRAM_BYTES

/**
 * A transaction within the extension blocks, as getrawtransaction shows it: without amounts and
 * scripts.
 */
type Shown = Record<string, unknown>

export class ExtensionBlocks {
  /** Transactions within the extension blocks that wait, by id. */
  readonly waiting = new Map<string, Shown>()
  #pegOuts: TxOut[] = []

  /** An output by which coins enter the extension blocks. */
  pegIn(value: bigint): TxOut {
    return { value, script: programOf(PEG_IN) }
  }

  /**
   * A transaction within the extension blocks waits from now on. @param pegOut what the next HogEx
   * pays for it @returns its id
   */
  add(pegOut?: TxOut): string {
    const [id, input, output, kernel] = Array.from({ length: 4 }, () =>
      randomBytes(32).toString('hex'),
    ) as [string, string, string, string]
    if (pegOut) this.#pegOuts.push(pegOut)
    this.waiting.set(id, {
      txid: id,
      hash: id,
      version: 2,
      size: 0,
      vsize: 0,
      weight: 0,
      locktime: 0,
      vin: [{ ismweb: true, output_id: input }],
      vout: [{ ismweb: true, output_id: output }],
      vkern: [{ kernel_id: kernel, fee: 0.000_02, pegout: pegOut ? [] : undefined }],
      hex: '',
    })
    return id
  }

  /** The last transaction of a block with these others, where something waits. */
  hogEx(ledger: Ledger, txs: readonly Tx[]): Tx | undefined {
    if (this.waiting.size === 0) return undefined
    const before = [...ledger.coins]
      .filter(([, { script }]) => isProgram(script, HOG))
      .map(([key, { value }]) => {
        const [txid = '', vout] = key.split(':')
        return { txid, vout: Number(vout), value }
      })
    const entering = txs.flatMap(({ txid, outs }) =>
      outs.flatMap(({ value, script }, vout) =>
        isProgram(script, PEG_IN) ? [{ txid, vout, value }] : [],
      ),
    )
    const taken = [...before, ...entering]
    return makeTx({
      version: 2,
      locktime: 0,
      isHogEx: true,
      ins: taken.map(({ txid, vout }) => ({
        txid,
        vout,
        script: Buffer.alloc(0),
        sequence: 0xffffffff,
        witness: [],
      })),
      outs: [{ value: sum(taken) - sum(this.#pegOuts), script: programOf(HOG) }, ...this.#pegOuts],
    })
  }

  /** A block holds what waited. */
  taken(): void {
    this.waiting.clear()
    this.#pegOuts = []
  }
}
