import { validateAddress, type Asset, type Registry } from '@custody/chains'
import type { SignedRequest } from '@custody/request-auth'
import { STAKED_ASSET, type stakeBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { HASH_MAX, ID_MAX } from '../../core/bounds.ts'
import { readAmount } from '../assets/read-amount.ts'
import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'

interface Services {
  registry: Registry
}

/**
 * Response of stake, unstake and release; the transaction is read with GET
 * /dac/v1/transaction/{id}.
 */
export const stakingShape = z
  .object({
    id: z.string().max(ID_MAX),
    status: z.enum(['pending', 'confirmed', 'failed']),
    hash: z.string().max(HASH_MAX).nullable(),
  })
  .meta({ id: 'StakingAnswer' })

/** A request to stake or unstake. `address`: the address that has the resource, validated. */
export interface StakeRequest {
  caller: Caller
  body: z.output<typeof stakeBody>
  signed: SignedRequest
  address: string
}

/** Maximum amount in sun; the chain uses signed 64-bit integers. */
const SUN_MAX = (1n << 62n) - 1n

/**
 * Validates a TRON address and returns its canonical form.
 * @throws ApiError `INVALID_ADDRESS`
 */
export function checkedAddress(services: Services, input: string): string {
  const checked = validateAddress(services.registry, STAKED_ASSET, input)
  if (!checked.valid)
    throw new ApiError('INVALID_ADDRESS', `address: ${checked.reason}`, { field: 'address' })
  return checked.address
}

/**
 * Parses an amount and returns it in sun.
 * @throws ApiError `INVALID_AMOUNT`
 */
export function checkedAmount(input: string, asset: Asset): bigint {
  const amount = readAmount(input, asset, 'amount', SUN_MAX)
  if (amount === 0n)
    throw new ApiError('INVALID_AMOUNT', 'amount: must be greater than zero', { field: 'amount' })
  return amount
}
