import { formatAmount, stellar, type Asset, type Network } from '@custody/chains'
import type { Services } from './services.ts'
import { traitsOf } from './traits.ts'

/** Longer than this nobody waits for an answer's sake: the worker asks again before anything is signed. */
const PATIENCE_MS = 2000

interface Payment { to: string; tag: string | null; amount: bigint; asset: Asset }

export interface DestinationRefusal { field: 'amount' | 'destination_address' | 'address_tag'; reason: string }

/**
 * What the chain knows against a payment: an account that does not exist and would not be created, one that wants
 * a tag, one that takes no payments. Null: nothing.
 * @throws where the chain cannot be asked
 */
export async function refusalOf(services: Services, network: Network, o: Payment): Promise<DestinationRefusal | null> {
  if (network.family === 'solana') return solanaRefusal(services, network, o)
  if (network.family === 'tron') return tronRefusal(services, network, o)
  if (traitsOf(network).deposits !== 'tagged') return null
  const client = services.networks.tagged(network.code)
  const muxed = network.family === 'stellar' ? stellar.splitMuxed(o.to) : null
  const account = await client.account(o.to)
  if (!account) {
    if (muxed) return { field: 'destination_address', reason: 'the account behind this M… address does not exist, and it cannot be created through it' }
    const least = await client.activation()
    const decimals = services.registry.asset(network.native_asset)?.decimals ?? 0
    return o.amount < least ? { field: 'amount', reason: `the destination account does not exist yet; at least ${formatAmount(least, decimals)} ${network.native_asset} creates it` } : null
  }
  if (account.requiresTag && o.tag === null && !muxed) return { field: 'address_tag', reason: `the destination takes payments only with a ${network.family === 'xrp' ? 'destination tag' : 'memo'}` }
  if (account.closed) return { field: 'destination_address', reason: 'the destination takes payments only from accounts that it has allowed' }
  return null
}

/** The same for an answer that must not wait: where the chain is away or slow, nothing is said against it. */
export async function refusalSoon(services: Services, network: Network, o: Payment): Promise<DestinationRefusal | null> {
  return Promise.race([refusalOf(services, network, o).catch(() => null), services.environment.sleep(PATIENCE_MS).then(() => null)])
}

/** A wallet's address only: coins at a program or a mint, and tokens of a token account, are lost. */
async function solanaRefusal(services: Services, network: Network, { to, amount, asset }: Payment): Promise<DestinationRefusal | null> {
  const client = services.networks.solana(network.code)
  const account = await client.account(to)
  if (account && !account.wallet) return { field: 'destination_address', reason: 'is a program, a mint or another account that is no wallet; coins sent there may be lost' }
  if (asset.type === 'token') return null
  const rent = await client.rent()
  return (account?.balance ?? 0n) + amount < rent ? { field: 'amount', reason: `the destination account does not exist yet; at least ${formatAmount(rent, asset.decimals)} ${asset.asset_name} creates it` } : null
}

/** Nodes refuse TRX for a contract; tokens may go to one. */
async function tronRefusal(services: Services, network: Network, { to, asset }: Payment): Promise<DestinationRefusal | null> {
  if (asset.type !== 'native' || !await services.networks.tron(network.code).isContract(to)) return null
  return { field: 'destination_address', reason: 'is a contract, which takes no TRX by a transfer' }
}
