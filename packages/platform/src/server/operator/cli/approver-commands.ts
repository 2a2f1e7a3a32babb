import type { Definition } from './definition.ts'

const approver = () => import('./approver.ts')

const DIR = { '!dir DIR': 'folder of the page' }

/** Commands of the local page on which a person approves transfers with a passkey. */
export const APPROVER_COMMANDS: readonly Definition[] = [
  {
    usage: 'approver init',
    summary:
      'Create the settings of a local page on which a person approves transfers with a passkey (docs/approver.md).',
    options: {
      ...DIR,
      '!platform URL': 'base URL of the platform',
      '!api-key KEY':
        'API key of the person’s sub-account, with the role full, which carries the decisions',
      '!private-key FILE': 'file with the RSA private key of the API key',
      '!trust-file FILE': 'trust file from the operator, which pins the signer nodes',
      '!person ID': 'ID of the person in the policy document',
      'document FILE':
        'policy file with the document in force (default: read from the platform, and verified by its hash)',
      'origin URL':
        'https origin at which a proxy publishes the page, such as https://approve.acme.example (default: http://localhost with a random port, which is kept)',
      'listen HOST:PORT':
        'address on which the page listens for the proxy of --origin (default: 127.0.0.1 with a random port)',
    },
    run: async () => (await approver()).init,
  },
  {
    usage: 'approver run',
    summary:
      'Serve the page of "approver init" on this machine until Ctrl-C, open it in a private window, and state when a window has loaded it; fails if another program uses its port.',
    options: {
      ...DIR,
      'no-open': 'open no window, and print how to open one by hand',
      'browser FILE':
        'program of Chrome, Chromium, Edge, Brave or Firefox that opens the window (default: the first that is installed)',
    },
    run: async () => (await approver()).run,
  },
]
