import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { encodeDeployData } from 'viem/utils'
import type { Anvil } from '../evm/anvil.ts'
import { artefact, deployedAddress, deployerKey } from '../evm/contracts.ts'
import { FAUCET_KEY, type EvmNetwork, type Token } from './networks.ts'

const DEPLOYER_COINS = 10n ** 18n
const TIP = 1_000_000_000n

/**
 * Sends a transaction of the local chain itself, which then waits for a block.
 * @returns its hash
 */
export async function send(
  anvil: Anvil,
  network: EvmNetwork,
  call: { to?: Hex; value: bigint; data?: Hex },
  key: Hex = FAUCET_KEY,
): Promise<Hex> {
  const account = privateKeyToAccount(key)
  const nonce = Number(await anvil.call<Hex>('eth_getTransactionCount', account.address, 'pending'))
  const common = {
    ...call,
    chainId: network.chainId,
    nonce,
    gas: call.to === undefined ? 2_000_000n : 200_000n,
  }
  const raw = await account.signTransaction(
    network.legacy
      ? { ...common, type: 'legacy', gasPrice: BigInt(await anvil.call<Hex>('eth_gasPrice')) }
      : {
          ...common,
          type: 'eip1559',
          maxFeePerGas: key === FAUCET_KEY ? 1_000_000_000_000n : 100_000_000_000n,
          // The fee history of the network shows tips that its nodes accept.
          maxPriorityFeePerGas: network.minTip.wei > TIP ? network.minTip.wei : TIP,
        },
  )
  return anvil.call<Hex>('eth_sendRawTransaction', raw)
}

/** Returns whether a token's address has code. */
export const isDeployed = async (anvil: Anvil, { address }: Token): Promise<boolean> =>
  (await anvil.call<Hex>('eth_getCode', address, 'latest')) !== '0x'

/**
 * Deploys contracts of the asset registry in two blocks, each at the address that follows from its
 * deployer's key.
 */
export async function deploy(
  anvil: Anvil,
  network: EvmNetwork,
  tokens: readonly Token[],
  mine: () => Promise<void>,
): Promise<void> {
  if (tokens.length === 0) return
  const keys = new Map(
    tokens.map((token) => [
      token,
      token.address === deployedAddress(FAUCET_KEY) ? FAUCET_KEY : deployerKey(token.asset),
    ]),
  )
  const holder = privateKeyToAccount(FAUCET_KEY).address
  const create = async (token: Token, key: Hex): Promise<void> => {
    const { abi, bytecode } = artefact(token.artefact)
    const data = encodeDeployData({ abi, bytecode, args: [token.supply, token.decimals, holder] })
    await send(anvil, network, { value: 0n, data }, key)
  }
  // The faucet's own contract is deployed first, because its address follows from the faucet's
  // first nonce.
  for (const [token, key] of keys) if (key === FAUCET_KEY) await create(token, key)
  for (const key of keys.values()) {
    if (key !== FAUCET_KEY)
      await send(anvil, network, { to: privateKeyToAccount(key).address, value: DEPLOYER_COINS })
  }
  await mine()
  for (const [token, key] of keys) if (key !== FAUCET_KEY) await create(token, key)
  await mine()
}
