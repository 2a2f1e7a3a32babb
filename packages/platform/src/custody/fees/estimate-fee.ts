import { formatAmount, traitsOf, validateAddress, type Asset, type Registry } from '@custody/chains'
import { z } from 'zod'
import { WORD_MAX } from '../../core/bounds.ts'
import { asRequestError } from '../assets/coin-refusal.ts'
import { findAsset } from '../assets/find-asset.ts'
import { readAmount } from '../assets/read-amount.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { exact } from '../../core/decimals.ts'
import { assetName, positive, text } from '../../core/http/schemas.ts'
import { feeRateInteger } from '../../core/engine/fee-rate.ts'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  registry: Registry
  networks: Networks
}

/** Maximum fee rate in the chain's integer unit, above any possible value. */
const RATE_MAX = (1n << 128n) - 1n

/** Returns the cost of a transfer at a fee rate, in the network's native coin. */
export const estimateFeeEndpoint = endpoint({
  id: 'estimateFee',
  tag: 'Fees',
  description:
    'Returns the network fee of a transfer at a given fee rate. Without an amount, the estimate is for a typical transfer. The operation writes nothing.',
  errors: [
    'UNSUPPORTED_ASSET',
    'INVALID_ADDRESS',
    'INVALID_AMOUNT',
    'CONSOLIDATE_FIRST',
    'NETWORK_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
  ],
  example: { asset: 'BTC', fee_rate: 3.2, amount: 0.015 },
  method: 'POST',
  path: '/dac/v1/estimate-fee',
  summary: 'Estimate a network fee',
  access: 'read',
  body: z.strictObject({
    asset: assetName,
    fee_rate: positive,
    amount: positive.optional(),
    destination_address: text(500).optional().meta({
      description: 'If present, rent, activation and the gas of a token’s contract are exact',
    }),
  }),
  response: z.object({
    asset: z.string().max(WORD_MAX),
    fee: z.number().meta({
      description:
        'Total network fee of the transfer, in the network’s native coin; includes `rent`, `activation` and `l1_fee`',
    }),
    fee_rate: z.number().min(0),
    fee_rate_unit: z.string().max(WORD_MAX),
    fee_asset: z.string().max(WORD_MAX),
    basis: z.enum(['wallet', 'typical']).meta({
      description:
        '`wallet`: calculated from the caller’s own coins; `typical`: one input and two outputs, or usual gas',
    }),
    rent: z.number().optional().meta({
      description:
        'Part of `fee`: rent deposit for the receiver’s token account (Solana) if it does not exist; assumed missing without a destination_address',
    }),
    activation: z.number().optional().meta({
      description:
        'Part of `fee`: cost of creating the receiver’s account (Tron) if it does not exist; replaces the bandwidth cost',
    }),
    l1_fee: z.number().optional().meta({
      description:
        'Part of `fee` that an OP Stack roll-up charges in addition to gas: publication on the parent chain and the operator fee',
    }),
  }),
  async handler({ caller, body }, services: Services) {
    const { asset, network } = findAsset(services, body.asset)
    const native = services.registry.asset(network.native_asset) as Asset
    let rate: bigint
    try {
      rate = feeRateInteger(network, body.fee_rate)
    } catch {
      throw new ApiError(
        'INVALID_REQUEST',
        `fee_rate: must be a decimal in ${network.fee_rate_unit} with at most ${traitsOf(network).feeRateDecimals} decimals`,
        { field: 'fee_rate' },
      )
    }
    if (rate > RATE_MAX)
      throw new ApiError('INVALID_REQUEST', 'fee_rate: is too large', { field: 'fee_rate' })
    if (rate === 0n)
      throw new ApiError('INVALID_REQUEST', 'fee_rate: must be greater than zero', {
        field: 'fee_rate',
      })
    const amount = body.amount === undefined ? null : readAmount(body.amount, asset, 'amount')
    if (amount === 0n)
      throw new ApiError('INVALID_AMOUNT', 'amount: must be greater than zero', { field: 'amount' })
    let to: string | null = null
    if (body.destination_address !== undefined) {
      const checked = validateAddress(services.registry, asset.asset_name, body.destination_address)
      if (!checked.valid)
        throw new ApiError('INVALID_ADDRESS', `destination_address: ${checked.reason}`, {
          field: 'destination_address',
        })
      to = checked.address
    }
    const estimate = await services.networks
      .get(network.code)
      .quote({ owner: caller, asset, rate, amount, to })
      .catch((error: unknown) => {
        throw asRequestError(error, asset)
      })
    const { extra } = estimate
    return {
      body: {
        asset: asset.asset_name,
        fee: exact(formatAmount(estimate.fee, native.decimals)),
        fee_rate: exact(body.fee_rate),
        fee_rate_unit: network.fee_rate_unit,
        fee_asset: asset.fee_asset,
        basis: estimate.basis,
        ...(extra === undefined
          ? {}
          : { [extra.name]: exact(formatAmount(extra.amount, native.decimals)) }),
        ...(estimate.l1Fee === undefined
          ? {}
          : { l1_fee: exact(formatAmount(estimate.l1Fee, native.decimals)) }),
      },
    }
  },
})
