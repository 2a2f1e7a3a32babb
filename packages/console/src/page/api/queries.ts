// Queries that the public API accepts by POST, sent through the mirror.
import { panel } from './http.ts'
import { scope } from './scope.ts'
import type { AddressValidation, FeeEstimate, PolicyEvaluation, PrepaidFee } from './types.ts'
import type { exact } from './wire.ts'

type Number = NonNullable<ReturnType<typeof exact>>
const ask = <T>(path: string, body: object): Promise<T> =>
  panel<T>('POST', `${scope.value.subPath}/api${path}`, body)

/** Validates an address of an asset's network. */
export const validateAddress = (
  asset: string,
  address: string,
  tag = '',
): Promise<AddressValidation> =>
  ask('/dac/v1/validate-address', { asset, address, ...(tag === '' ? {} : { address_tag: tag }) })

/** Returns the network fee of a transfer. */
export const estimateFee = (
  asset: string,
  fee_rate: Number,
  amount: Number | null,
  destination: string,
): Promise<FeeEstimate> =>
  ask('/dac/v1/estimate-fee', {
    asset,
    fee_rate,
    ...(amount === null ? {} : { amount }),
    ...(destination === '' ? {} : { destination_address: destination }),
  })

/** Reads the workspace's prepaid account. */
export const readPrepaidFee = (): Promise<PrepaidFee> => ask('/dac/v1/prepaid-fee', {})

/** Returns what the policy would decide about a request that an API key would sign. */
export const evaluatePolicy = (
  uri: string,
  body: object,
  api_key: string,
): Promise<PolicyEvaluation> =>
  ask('/dac/v1/policy/evaluate', { method: 'POST', uri, body, api_key })
