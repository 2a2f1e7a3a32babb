import { cardano, type Asset, type Network, type Riders } from '@custody/chains'
import type { Services } from './services.ts'

const FRESH_MS = 10_000
const PATIENCE_MS = 2000
/** Chains whose accounts keep something; where one was never reached, what they are held to keep today. */
const FALLBACK: Record<string, bigint> = { xrp: 1_000_000n, stellar: 10_000_000n, solana: 890_880n }

const known = new WeakMap<Services, Map<string, { value: bigint; at: number }>>()

/** What the chain wants to stay on an account, in the smallest native unit; 0 where it wants nothing. Never fails because the chain is away. */
export async function chainReserve(services: Services, network: Network, address: string, asset: Asset): Promise<bigint> {
  if (network.family === 'cardano') return keptWithTokens(services, network, address)
  if (asset.type !== 'native' || FALLBACK[network.family] === undefined) return 0n
  const cache = known.get(services) ?? new Map<string, { value: bigint; at: number }>()
  known.set(services, cache)
  const name = `${network.code} ${address}`
  const last = cache.get(name)
  if (last && services.environment.now() - last.at < FRESH_MS) return last.value
  const read = ask(services, network, address).then((value) => {
    cache.set(name, { value, at: services.environment.now() })
    return value
  })
  const otherwise = last?.value ?? FALLBACK[network.family] ?? 0n
  return Promise.race([read.catch(() => otherwise), services.environment.sleep(PATIENCE_MS).then(() => otherwise)])
}

async function ask(services: Services, network: Network, address: string): Promise<bigint> {
  if (network.family === 'solana') return services.networks.solana(network.code).rent()
  const client = services.networks.tagged(network.code)
  return (await client.account(address))?.reserve ?? await client.activation()
}

/** Lovelace that ride with the native tokens of a wallet's coins, whatever is sent; `address` is one of its own. */
async function keptWithTokens(services: Services, network: Network, address: string): Promise<bigint> {
  const coins = await services.database.query<{ riders: Riders }>(
    `select u.riders from utxos u join wallets w on w.id = u.wallet_id join chain_addresses c on c.network = u.network and c.sub_account_id = w.sub_account_id
     where c.network = $1 and c.address = $2 and u.riders is not null and u.spendable and u.spent_by is null`, [network.code, address])
  return cardano.keptWith(coins)
}
