import { releaseBody } from '@custody/request-auth/bodies'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { checkedAddress, stakingShape } from './body.ts'
import { callChain } from './chain.ts'
import { create, earlierStaking, once } from './create.ts'
import { feeOf, stepsOf } from './steps.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Receipts } from '../../core/signing/receipts.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  receipts: Receipts
  addresses: Addresses
}

/**
 * Releases TRX whose cooldown is over. The chain does not release parts: everything that has
 * matured on the account returns.
 */
export const releaseUnstaked = endpoint({
  id: 'releaseUnstaked',
  tag: 'Staking',
  description: 'Returns the TRX whose cooldown is over to the wallet’s spendable balance.',
  errors: [
    'UNSUPPORTED_ASSET',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'INVALID_ADDRESS',
    'NOTHING_TO_RELEASE',
    'NETWORK_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
  ],
  example: {
    asset: 'TRX',
    address: 'TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW',
    sequence_id: 'release-3',
  },
  method: 'POST',
  path: '/dav/v1/release-unstaked',
  summary: 'Release unstaked TRX after its cooldown',
  access: 'write',
  audit: { not: 'the release stores the request and its key' },
  body: releaseBody,
  response: stakingShape,
  earlier: earlierStaking('RELEASE'),
  async handler({ caller, body, signed }, services: Services) {
    const address = checkedAddress(services, body.address)
    return once(services, caller, 'RELEASE', body, async (opened) => {
      const { network, wallet, account } = opened
      const client = services.networks.stakes(network.code).client
      const [headTime, { bandwidthSun }] = await callChain(network, () =>
        Promise.all([client.headTime(), services.networks.stakes(network.code).parameters()]),
      )
      const waiting = await services.database.query<{
        amount: string
        address: string
        release_at: Date
        releasing_by: string | null
      }>(
        `select amount::text, address, release_at, releasing_by from cooldowns
         where workspace_id = $2 and wallet_id = $1 and released_by is null order by release_at`,
        [wallet.id, caller.workspaceId],
      )
      const matured = waiting.filter(
        ({ release_at, releasing_by }) => release_at.getTime() <= headTime && releasing_by === null,
      )
      if (!matured.some((each) => each.address === address))
        throw nothing(waiting.filter((each) => each.address === address))
      return create(services, {
        ...opened,
        kind: 'RELEASE',
        caller,
        signed,
        address,
        resource: null,
        amount: matured.reduce((sum, { amount }) => sum + BigInt(amount), 0n),
        sequenceId: body.sequence_id,
        fee: feeOf(stepsOf('RELEASE', address === account), bandwidthSun),
        plan: {},
        async reserve(tx, id) {
          const marked = await tx.query<{ address: string }>(
            `update cooldowns set releasing_by = $2
             where workspace_id = $4 and wallet_id = $1 and released_by is null
               and releasing_by is null
              and release_at <= $3 returning address`,
            [wallet.id, id, new Date(headTime), caller.workspaceId],
          )
          if (!marked.some((each) => each.address === address)) throw nothing([])
        },
      })
    })
  },
})

function nothing(cooling: readonly { release_at: Date; releasing_by: string | null }[]): ApiError {
  const [next] = cooling.filter(({ releasing_by }) => releasing_by === null)
  const reason = next
    ? `the cooldown of what was unstaked from it ends ${next.release_at.toISOString()} by the time of the chain`
    : cooling.length > 0
      ? 'its unstaked TRX is already being released'
      : 'it has no unstaked TRX in cooldown'
  return new ApiError('NOTHING_TO_RELEASE', `address: ${reason}`, { field: 'address' })
}
