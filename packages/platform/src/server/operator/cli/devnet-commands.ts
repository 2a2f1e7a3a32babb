import type { Definition } from './definition.ts'
import type { Run } from './typed.ts'

const devnet = (action: string) => async (): Promise<Run> => {
  const { devnetCommand } = await import('../devnet.ts')
  return ({ home, words, values }) => devnetCommand(home, [action, ...words], values)
}

const NETWORK = 'network of the local chain, such as ETH'

/** Commands that control the local chains, price sources, screening providers and exchanges. */
export const DEVNET_COMMANDS: readonly Definition[] = [
  {
    usage: 'devnet fund <ASSET> <ADDRESS> <AMOUNT>',
    summary: 'Send coins to an address on a local chain and mine the transaction.',
    args: {
      ASSET: 'asset to send, such as ETH',
      ADDRESS: 'address that receives the coins',
      AMOUNT: 'amount in units of the asset, such as 1.5',
    },
    options: { 'tag T': 'destination tag or memo (default: none)' },
    run: devnet('fund'),
  },
  {
    usage: 'devnet mine <NETWORK> <BLOCKS>',
    summary: 'Mine blocks on a local chain.',
    args: { NETWORK, BLOCKS: 'number of blocks, at most 1000' },
    run: devnet('mine'),
  },
  {
    usage: 'devnet reorg <NETWORK> <DEPTH>',
    summary: 'Reorganize a local chain: replace its last DEPTH blocks.',
    args: { NETWORK, DEPTH: 'number of blocks to replace, at most 100' },
    run: devnet('reorg'),
  },
  {
    usage: 'devnet fault <WHAT> <MODE>',
    summary:
      'Make a local chain, screening provider, price source or exchange fail in a given way; "heal" ends it.',
    args: {
      WHAT:
        'network (such as ETH), screening provider (CHAINALYSIS, ELLIPTIC, TRM; AML: all), ' +
        'price source or exchange (COINGECKO, KRAKEN, BINANCE; PRICES: all price sources)',
      MODE:
        'for a network: drop-answer, reject, lag, down, heal; ' +
        'no-final: EVM networks know no final block; no-estimate: BTC, LTC and DASH have no fee estimate; ' +
        'no-internal: TRX does not report the payments of contracts. ' +
        'For a screening provider: down, drop-answer, lag, reject, malformed, empty, unknown, rate-limited, revoked, heal. ' +
        'For a price source: down, lag, malformed, stale, rate-limited, heal. ' +
        'For KRAKEN and BINANCE also: drop-answer, unknown-answer, stalled-answer, duplicate-fill, clock-skew, stuck-withdrawal, ' +
        'hidden-order, changed-address',
    },
    run: devnet('fault'),
  },
  {
    usage: 'devnet risk <ADDRESS> <LEVEL>',
    summary: 'Set the risk level that the local screening providers return for an address.',
    args: {
      ADDRESS: 'address, such as the sender of a deposit',
      LEVEL: 'SEVERE, HIGH, MEDIUM, LOW or none',
    },
    run: devnet('risk'),
  },
  {
    usage: 'devnet price <COIN> <USD>',
    summary: 'Set the price of a coin at the local price sources.',
    args: { COIN: 'ticker of the coin, such as BTC', USD: 'price of one coin in USD' },
    options: {
      'source S': 'price source: COINGECKO, KRAKEN or BINANCE (default: all three)',
    },
    run: devnet('price'),
  },
  {
    usage: 'devnet venue key',
    summary: 'Create an account with play money at a local exchange, and print an API key for it.',
    options: {
      '!exchange E': 'exchange of the account: kraken or binance',
      'permissions LIST':
        'permissions of the key, comma-separated, from query,trade,deposit,withdraw (default: all)',
      'no-withdraw': 'create the key without the permission to withdraw',
      'balances LIST':
        'balances of the new account, such as BTC=1,USD=5000 (default: the exchange’s usual play money)',
      'account-of KEY': 'API key whose account the new key is for (default: a new account)',
      'nonce-window MS':
        'milliseconds by which a nonce may be below the highest one, at Kraken (default: 0)',
      unlimited: 'exempt the key from the rate limit',
    },
    run: devnet('venue key'),
  },
  {
    usage: 'devnet venue revoke <KEY>',
    summary: 'Revoke an API key at a local exchange.',
    args: { KEY: 'API key to revoke' },
    run: devnet('venue revoke'),
  },
  {
    usage: 'devnet venue address <KEY> <ASSET> <ADDRESS>',
    summary: 'Register a withdrawal address for an account at a local exchange.',
    args: {
      KEY: 'API key of the account',
      ASSET: 'asset to withdraw, such as ETH',
      ADDRESS: 'address that may receive withdrawals',
    },
    options: {
      'name NAME':
        'name of the address at the exchange, at most 60 characters (default: asset and end of the address)',
      'tag T': 'destination tag or memo (default: none)',
    },
    run: devnet('venue address'),
  },
  {
    usage: 'devnet venue urls',
    summary: 'Print the URLs of the local exchanges.',
    run: devnet('venue urls'),
  },
  {
    usage: 'devnet drop <NETWORK> <HASH>',
    summary: 'Remove an unconfirmed transaction from the memory pool of a local EVM chain.',
    args: { NETWORK, HASH: 'hash of the transaction' },
    run: devnet('drop'),
  },
  {
    usage: 'devnet congestion <NETWORK> <FEE_RATE>',
    summary:
      'Set the lowest fee rate of the transactions that a local chain includes in its blocks.',
    args: {
      NETWORK,
      FEE_RATE:
        'lowest fee rate that is included, in the network’s unit (gwei on EVM networks, sat/vB on UTXO networks); 0 ends the congestion',
    },
    run: devnet('congestion'),
  },
  {
    usage: 'devnet urls',
    summary: 'Print the RPC URL of each local chain, with an example call to paste.',
    run: devnet('urls'),
  },
  {
    usage: 'devnet contract <NETWORK> <TICKER>',
    summary:
      'Print the local contract address of a token, for the asset registry (docs/adding-a-chain.md).',
    args: { NETWORK: 'network of the token, such as ETH', TICKER: 'ticker, such as USDC' },
    run: devnet('contract'),
  },
  {
    usage: 'devnet clock <ADVANCE>',
    summary: 'Advance the block time of the local Tron chain; no other clock changes.',
    args: { ADVANCE: 'time span in days, hours, minutes or seconds: +14d, +3h, +15m, +20s' },
    run: devnet('clock'),
  },
  {
    usage: 'devnet info',
    summary: 'Print the height, URL and fault mode of each local chain, and the token contracts.',
    run: devnet('info'),
  },
]
