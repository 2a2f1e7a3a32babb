import { createWalletClient, defineChain, http, parseEther, type Hash } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

/** The account that creates the contracts; it needs coins. */
export const CONTRACT_PAYER = privateKeyToAccount(`0x${'a9'.repeat(32)}`)

/** Code of contracts that pay all they receive: in a call, as wallets and batch payers do, or at their end. */
const CODES = {
  // CALL(gas, address, callvalue, 0, 0, 0, 0); STOP
  call: (address: string) => `0x60006000600060003473${address}5af100`,
  // SELFDESTRUCT(address)
  selfdestruct: (address: string) => `0x73${address}ff`,
} as const

/**
 * Pays an address on the local Ethereum chain by a contract, so that no block lists the payment.
 * @param url of the chain
 */
export const payByContract = (
  url: string,
  address: string,
  wei: bigint,
  by: keyof typeof CODES = 'call',
): Promise<Hash> =>
  createWalletClient({
    chain: defineChain({
      id: 31337,
      name: 'local',
      nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
      rpcUrls: { default: { http: [url] } },
    }),
    transport: http(url),
    account: CONTRACT_PAYER,
  }).sendTransaction({
    data: CODES[by](address.slice(2).toLowerCase()) as `0x${string}`,
    value: wei,
    gas: 200_000n,
  })

/**
 * Like {@link payByContract}, at the local chain of a platform, and mines the transaction.
 * @param ether amount as a decimal
 */
export async function contractPays(
  platform: {
    operator(command: string, input: Record<string, unknown>): Promise<Record<string, unknown>>
  },
  address: string,
  ether: string,
): Promise<void> {
  const devnet = (input: Record<string, unknown>) => platform.operator('devnet', input)
  await devnet({ command: 'fund', asset: 'ETH', address: CONTRACT_PAYER.address, amount: '100' })
  const { endpoints } = (await devnet({ command: 'urls' })) as {
    endpoints: { network: string; url: string }[]
  }
  const url = endpoints.find(({ network }) => network === 'ETH')?.url as string
  await payByContract(url, address, parseEther(ether))
  await devnet({ command: 'mine', network: 'ETH', blocks: 1 })
}
