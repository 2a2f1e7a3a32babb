import { randomBytes } from 'node:crypto'
import { sum, type Ledger } from './ledger.ts'
import { makeTx, type Tx, type TxOut } from './transaction.ts'

// Litecoin's extension blocks (MWEB), limited to their effects on the main chain: transactions
// within them wait in the node's pool, and the last transaction of a block (HogEx) takes coins in
// and pays coins out. The content of the extension blocks is not stored here.

/**
 * Script versions of witness programs of 32 bytes with version 8 or 9 (LIP-3): the coins of the
 * extension blocks, and an output that enters them.
 */
const HOG = 0x58
const PEG_IN = 0x59
const PROGRAM_BYTES = 32

const programOf = (version: number): Buffer =>
  Buffer.concat([Buffer.from([version, PROGRAM_BYTES]), randomBytes(PROGRAM_BYTES)])
const isProgram = (script: Buffer, version: number): boolean =>
  script.length === 2 + PROGRAM_BYTES && script[0] === version && script[1] === PROGRAM_BYTES

/**
 * A transaction within the extension blocks, as getrawtransaction returns it: without amounts and
 * scripts.
 */
type Shown = Record<string, unknown>

export class ExtensionBlocks {
  /** Waiting transactions within the extension blocks, by id. */
  readonly waiting = new Map<string, Shown>()
  #pegOuts: TxOut[] = []

  /** Returns an output by which coins enter the extension blocks. */
  pegIn(value: bigint): TxOut {
    return { value, script: programOf(PEG_IN) }
  }

  /**
   * Adds a waiting transaction within the extension blocks.
   * @param pegOut output that the next HogEx pays for it
   * @returns its id
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

  /** Returns the last transaction of a block with the given others; undefined if none waits. */
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

  /** Removes the waiting transactions after a block has included them. */
  taken(): void {
    this.waiting.clear()
    this.#pegOuts = []
  }
}
