import type { Abi } from 'viem'
import {
  BLOCK_VERSION,
  WITNESS,
  witnessSignature,
  type Block,
  type Included,
  type TronChain,
} from './chain.ts'
import { sha256 } from './address.ts'
import { slotOf, usedOf, type Account } from './rules.ts'
import { transactionJson } from './transaction.ts'

export const hexText = (text: string): string => Buffer.from(text, 'utf8').toString('hex')

/** Removes zero and empty fields, as nodes do. */
export function filled(json: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(json).filter(
      ([, value]) =>
        value !== undefined &&
        value !== 0 &&
        value !== 0n &&
        value !== '' &&
        !(Array.isArray(value) && value.length === 0),
    ),
  )
}

function headerJson(block: Block): Record<string, unknown> {
  const { id, number, time, parent, root } = block
  return {
    blockID: id,
    block_header: {
      raw_data: filled({
        number,
        txTrieRoot: root,
        witness_address: WITNESS,
        parentHash: parent,
        version: BLOCK_VERSION,
        timestamp: time,
      }),
      witness_signature: witnessSignature(block),
    },
  }
}

export function includedJson({ tx, outcome }: Included, visible: boolean): Record<string, unknown> {
  return { ret: [{ contractRet: outcome.contractRet }], ...transactionJson(tx, visible) }
}

export function blockJson(
  block: Block | undefined,
  visible: boolean,
  detail = true,
): Record<string, unknown> {
  if (!block) return {}
  return {
    ...headerJson(block),
    ...(detail && block.transactions.length > 0
      ? { transactions: block.transactions.map((each) => includedJson(each, visible)) }
      : {}),
  }
}

export function infoJson(block: Block, { tx, outcome }: Included): Record<string, unknown> {
  const isCall = tx.type === 'TriggerSmartContract'
  return filled({
    id: tx.id,
    fee: outcome.fee,
    blockNumber: block.number,
    blockTimeStamp: block.time,
    contractResult: [outcome.output],
    contract_address: isCall ? String(tx.value['contract_address']) : undefined,
    receipt: filled({
      energy_usage: outcome.energyUsage,
      energy_fee: outcome.energyFee,
      energy_usage_total: outcome.energyTotal,
      energy_penalty_total: outcome.energyPenalty,
      net_usage: outcome.netUsage,
      net_fee: outcome.netFee,
      result: isCall ? outcome.contractRet : undefined,
    }),
    log: outcome.logs,
    internal_transactions: outcome.internal.map(({ from, to, amount }, at) => ({
      hash: sha256(Buffer.from(`${tx.id} ${at}`)).toString('hex'),
      caller_address: from,
      transferTo_address: to,
      callValueInfo: [{ callValue: amount }],
      note: hexText('call'),
    })),
    result: outcome.contractRet === 'SUCCESS' ? undefined : 'FAILED',
    resMessage: hexText(outcome.message),
    withdraw_expire_amount: outcome.withdrawn,
  })
}

export function accountJson(account: Account, chain: TronChain): Record<string, unknown> {
  const slot = slotOf(chain.head.time)
  return filled({
    address: account.address,
    balance: account.balance,
    create_time: account.created,
    net_usage: usedOf(account.usage[0], slot),
    free_net_usage: usedOf(account.free, slot),
    frozenV2: [
      filled({ amount: account.frozen[0] }),
      filled({ type: 'ENERGY', amount: account.frozen[1] }),
      { type: 'TRON_POWER' },
    ],
    unfrozenV2: account.unfreezing.map(({ resource, amount, expires }) =>
      filled({
        type: resource === 1 ? 'ENERGY' : undefined,
        unfreeze_amount: amount,
        unfreeze_expire_time: expires,
      }),
    ),
    delegated_frozenV2_balance_for_bandwidth: account.lent[0],
    acquired_delegated_frozenV2_balance_for_bandwidth: account.borrowed[0],
    account_resource: filled({
      energy_usage: usedOf(account.usage[1], slot),
      delegated_frozenV2_balance_for_energy: account.lent[1],
      acquired_delegated_frozenV2_balance_for_energy: account.borrowed[1],
    }),
    net_window_size: 28_800_000,
    net_window_optimized: true,
  })
}

/** Converts an ABI: its types begin with capitals in java-tron. */
export function abiEntries(abi: Abi): unknown[] {
  return (abi as unknown as { type: string; stateMutability?: string }[]).map((entry) => ({
    ...entry,
    type: entry.type.replace(/^./, (letter) => letter.toUpperCase()),
    ...(entry.stateMutability
      ? { stateMutability: entry.stateMutability.replace(/^./, (letter) => letter.toUpperCase()) }
      : {}),
  }))
}
