import type { Hex } from 'viem'
import type { Anvil } from '../evm/anvil.ts'
import type { Pending } from './policy.ts'
import { chargesOf, take, type Charge, type Rollup } from './rollup.ts'

/**
 * A block as it is journalled: with these the engine makes the same block again, to the hash.
 * `base_fee`: what the operator set it to; else it follows from the block before. `charges`: what a
 * roll-up took after it.
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
 * `after`: height of the last block that stays. A reorganisation is one record, so it is all or
 * nothing.
 */
export type ChainRecord = { blocks: BlockRecord[]; after?: number }

/** As the engine tells of it. */
export type Block = { number: Hex; hash: Hex; parentHash: Hex; timestamp: Hex; transactions: Hex[] }

/** @param pending what waited; the block's own leave it */
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

/** The engine's newest block. */
export async function blockRecord(anvil: Anvil, pending: Map<Hex, Pending>): Promise<BlockRecord> {
  const block = await anvil.call<Block>('eth_getBlockByNumber', 'latest', false)
  const raw: Hex[] = []
  for (const hash of block.transactions) {
    raw.push(pending.get(hash)?.raw ?? (await anvil.call<Hex>('eth_getRawTransactionByHash', hash)))
    pending.delete(hash)
  }
  return { height: Number(block.number), time: Number(block.timestamp), hash: block.hash, raw }
}

/** Makes a block of the journal again. @throws Error where it comes out otherwise */
export async function replay(anvil: Anvil, block: BlockRecord): Promise<void> {
  for (const raw of block.raw) await anvil.call('eth_sendRawTransaction', raw)
  if (block.base_fee !== undefined)
    await anvil.call('anvil_setNextBlockBaseFeePerGas', block.base_fee)
  await anvil.call('evm_mine', { timestamp: block.time })
  const made = await anvil.call<Block>('eth_getBlockByNumber', 'latest', false)
  if (made.hash !== block.hash)
    throw new Error(
      `block ${block.height} came back as ${made.hash}, the journal has ${block.hash}`,
    )
  await take(anvil, block.charges ?? [])
}
