import { uint32, uint64 } from './encoding.ts'
import { makeTx, typeOf, type Tx, type TxOut } from './transaction.ts'

// Dash's special transactions (DIP-2): coinbases (DIP-4) and withdrawals from the credit pool of
// its platform (DIP-27).

const COINBASE_TYPE = 5
const ASSET_UNLOCK_TYPE = 9
const VERSION = 3
const UNLOCK_VERSION = 1
const QUORUM_SIGNATURE_BYTES = 96
/**
 * Offsets in an asset unlock's payload: version, index, fee, requested height, quorum, signature.
 */
const UNLOCK_FEE_AT = 1 + 8

export const COINBASE_VERSION = (COINBASE_TYPE << 16) | VERSION

/** Encodes a CCbTx, version 2: the height and the roots of two lists, which are empty here. */
export function coinbasePayload(height: number): Buffer {
  const version = Buffer.from([2, 0])
  return Buffer.concat([version, uint32(height), Buffer.alloc(32), Buffer.alloc(32)])
}

export const isAssetUnlock = (tx: Pick<Tx, 'version' | 'ins' | 'payload'>): boolean =>
  tx.payload !== undefined && typeOf(tx) === ASSET_UNLOCK_TYPE && tx.ins.length === 0

/** Returns the fee of a withdrawal in satoshi. */
export function unlockFee({ payload }: Pick<Tx, 'payload'>): bigint {
  return BigInt((payload as Buffer).readUInt32LE(UNLOCK_FEE_AT))
}

/**
 * Builds a withdrawal from the credit pool. Its quorum signature consists of zeros here.
 * @param o.index of the withdrawal
 * @param o.height of the chain
 */
export function assetUnlock(out: TxOut, o: { index: bigint; fee: number; height: number }): Tx {
  const payload = Buffer.concat([
    Buffer.from([UNLOCK_VERSION]),
    uint64(o.index),
    uint32(o.fee),
    uint32(o.height),
    Buffer.alloc(32),
    Buffer.alloc(QUORUM_SIGNATURE_BYTES),
  ])
  return makeTx({
    version: (ASSET_UNLOCK_TYPE << 16) | VERSION,
    ins: [],
    outs: [out],
    locktime: 0,
    payload,
  })
}

/** Returns the fields that Dash Core adds to a transaction's object. */
export function specialFields(tx: Tx): Record<string, unknown> {
  const { payload } = tx
  if (payload === undefined) return {}
  const fields = {
    type: typeOf(tx),
    extraPayloadSize: payload.length,
    extraPayload: payload.toString('hex'),
  }
  if (typeOf(tx) === COINBASE_TYPE) {
    const none = '0'.repeat(64)
    return {
      ...fields,
      cbTx: {
        version: 2,
        height: payload.readInt32LE(2),
        merkleRootMNList: none,
        merkleRootQuorums: none,
      },
    }
  }
  if (!isAssetUnlock(tx)) return fields
  return {
    ...fields,
    assetUnlockTx: {
      version: payload[0],
      index: Number(payload.readBigUInt64LE(1)),
      fee: Number(unlockFee(tx)),
      requestedHeight: payload.readUInt32LE(13),
      quorumHash: '0'.repeat(64),
      quorumSig: '0'.repeat(2 * QUORUM_SIGNATURE_BYTES),
    },
  }
}
