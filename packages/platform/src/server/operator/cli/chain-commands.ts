import type { Definition } from './definition.ts'

const NETWORK = 'network, such as ETH'
const endpoints = () => import('./endpoints.ts')

/** Commands about chains and their endpoints. */
export const CHAIN_COMMANDS: readonly Definition[] = [
  {
    usage: 'probe <NETWORK> <URL>',
    summary:
      'Check that an endpoint supports every call that the platform makes, before it is configured; exit 1 if a required one is missing.',
    args: { NETWORK: 'network of the endpoint, such as ETH', URL: 'http(s) URL of the endpoint' },
    options: {
      'username U': 'user name of HTTP basic authentication (default: none)',
      'password-file F': 'file whose first line is the password of --username (default: none)',
      'header NAME:VALUE…':
        'HTTP header, such as a provider’s key; VALUE may be @FILE; repeat the option for several headers',
    },
    run: async () => (await import('../probe.ts')).probeRun,
  },
  {
    usage: 'endpoint trust <NETWORK>',
    summary:
      'Let the endpoints of a network end and price transfers for a time although their newest block seems to be old.',
    args: { NETWORK },
    options: { '!for TIME': 'time from now, such as 30m or 1h, up to 24h; 0: no longer' },
    run: async () => (await endpoints()).trust,
  },
  {
    usage: 'chain accept-reorg <NETWORK> <HEIGHT> <HASH>',
    summary:
      'Accept the block that an endpoint returns instead of one that was final: what the former blocks booked is taken back, and the network credits and pays again.',
    args: {
      NETWORK,
      HEIGHT: 'height of the block, as the doctor shows it',
      HASH: 'hash of the block that the endpoint returns, compared with a block explorer',
    },
    run: async () => (await endpoints()).acceptReorg,
  },
]
