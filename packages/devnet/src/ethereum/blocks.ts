import type { Hex } from 'viem'
import type { Anvil } from '../evm/anvil.ts'
import type { Pending } from './policy.ts'
import { chargesOf, take, type Charge, type Rollup } from './rollup.ts'

/**
 * A block in the journal: with these fields the engine produces an identical block with the same
 * hash. `base_fee`: value set by the operator; otherwise it follows from the previous block.
 * `charges`: fees of a roll-up after the block.
 */
export type BlockRecord = {
  height: number
  time: number
  hash: Hex
  raw: Hex[]
  base_fee?: Hex
  charges?: Charge[]
}
/**
 * `after`: height of the last block that is kept. A reorganization is one record, so it is atomic.
 */
export type ChainRecord = { blocks: BlockRecord[]; after?: number }

/** A block as the engine returns it. */
export type Block = { number: Hex; hash: Hex; parentHash: Hex; timestamp: Hex; transactions: Hex[] }

/**
 * Mines a block.
 * @param pending waiting transactions; those in the block are removed
 */
export async function mineBlock(
  anvil: Anvil,
  time: number,
  pending: Map<Hex, Pending>,
  { baseFee = null, rollup = null }: { baseFee?: Hex | null; rollup?: Rollup } = {},
): Promise<BlockRecord> {
  if (baseFee !== null) await anvil.call('anvil_setNextBlockBaseFeePerGas', baseFee)
  await anvil.call('evm_mine', { timestamp: time })
  const block = await blockRecord(anvil, pending)
  const charges = await chargesOf(rollup, anvil, block)
  await take(anvil, charges)
  return {
    ...block,
    ...(baseFee === null ? {} : { base_fee: baseFee }),
    ...(charges.length === 0 ? {} : { charges }),
  }
}

/** Returns the journal record of the engine's newest block. */
export async function blockRecord(anvil: Anvil, pending: Map<Hex, Pending>): Promise<BlockRecord> {
  const block = await anvil.call<Block>('eth_getBlockByNumber', 'latest', false)
  const raw: Hex[] = []
  for (const hash of block.transactions) {
    raw.push(pending.get(hash)?.raw ?? (await anvil.call<Hex>('eth_getRawTransactionByHash', hash)))
    pending.delete(hash)
  }
  return { height: Number(block.number), time: Number(block.timestamp), hash: block.hash, raw }
}

/**
 * Produces a block of the journal again.
 * @throws Error if the result differs
 */
export async function replay(anvil: Anvil, block: BlockRecord): Promise<void> {
  for (const raw of block.raw) await anvil.call('eth_sendRawTransaction', raw)
  if (block.base_fee !== undefined)
    await anvil.call('anvil_setNextBlockBaseFeePerGas', block.base_fee)
  await anvil.call('evm_mine', { timestamp: block.time })
  const made = await anvil.call<Block>('eth_getBlockByNumber', 'latest', false)
  if (made.hash !== block.hash)
    throw new Error(
      `block ${block.height} was restored as ${made.hash}, but the journal has ${block.hash}`,
    )
  await take(anvil, block.charges ?? [])
}
