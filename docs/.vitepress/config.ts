import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type DefaultTheme } from 'vitepress'

/**
 * The pages stand where they are in the repository, so that each link works there and on the site.
 */
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const titleOf = (path: string): string =>
  /^# (.+)$/m.exec(readFileSync(join(ROOT, path), 'utf8'))?.[1] ?? path

/**
 * @param pages text and path from the root, without `.md`; where the text is left out, the page's
 *   own title
 */
const group = (
  text: string,
  pages: readonly (string | [string, string])[],
  collapsed = false,
): DefaultTheme.SidebarItem => ({
  text,
  collapsed,
  items: pages.map((page) =>
    typeof page === 'string'
      ? { text: titleOf(`${page}.md`), link: `/${page}` }
      : { text: page[0], link: `/${page[1]}` },
  ),
})

const decisions = readdirSync(join(ROOT, 'docs/decisions'))
  .filter((name) => /^\d/.test(name))
  .sort()
  .map((name): [string, string] => [
    `${name.slice(0, 3)} ${titleOf(`docs/decisions/${name}`)}`,
    `docs/decisions/${name.replace(/\.md$/, '')}`,
  ])

export default defineConfig({
  title: 'Custody',
  description: 'Self-hosted digital-asset custody: threshold-signed wallets, idempotent transfers',
  lang: 'en',
  srcDir: '..',
  srcExclude: [
    '**/node_modules{,.*}/**',
    '**/{target,dist,.custody}/**',
    'examples/**',
    'packages/!(platform)/*/**',
    'packages/platform/!(src)/**',
    'packages/platform/src/*/*/**',
  ],
  // A folder, and what a running platform alone can answer.
  ignoreDeadLinks: [/examples\//, /deploy\//, /^https?:\/\/(localhost|127\.0\.0\.1)/],
  lastUpdated: false,
  themeConfig: {
    logoLink: '/docs/',
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Quick start', link: '/docs/quick-start' },
      { text: 'Concepts', link: '/docs/concepts' },
      { text: 'Security', link: '/SECURITY' },
      { text: 'Changes', link: '/CHANGELOG' },
    ],
    sidebar: [
      group('Begin', [
        ['What it is', 'docs/index'],
        ['Front page', 'README'],
        'docs/quick-start',
        'docs/concepts',
        'docs/glossary',
      ]),
      group('Using the API', [
        'docs/requests',
        'docs/wallets',
        'docs/transfers',
        'docs/fees',
        'docs/screening',
        'docs/staking',
        'docs/auto-forwarding',
        'docs/invoices',
        'docs/checkout',
        'docs/trading',
        'docs/events',
        'docs/webhooks',
        'docs/errors',
        'docs/api-changes',
        ['TypeScript client', 'packages/client/README'],
        'docs/signing',
      ]),
      group('Running it', [
        'docs/console',
        'docs/production/README',
        'docs/production/sizing',
        'docs/production/hardening',
        'docs/production/going-live',
        'docs/production/upgrades',
        'docs/production/playbooks',
        'docs/production/topology',
        'docs/production/several-hosts',
        'docs/production/database',
        'docs/production/growing',
        'docs/production/keys',
        'docs/production/deployment',
        'docs/rehearsal',
        'docs/mainnet',
        'docs/production/networks',
        'docs/enrolment',
        'docs/policies',
        'docs/approver',
        'docs/policy-examples',
        'docs/policy-lock-outs',
        'docs/settings',
        'docs/operating',
        'docs/production/timers',
        'docs/production/monitoring',
        'docs/production/log-events',
        'docs/production/runbooks',
        'docs/production/disaster',
        'docs/production/recovery-without-the-platform',
        'docs/production/replacing-a-banned-node',
        'docs/restoring-a-database',
        'docs/production/proof-of-reserves',
        'docs/performance',
        ['Signer node', 'packages/signer/README'],
      ]),
      group('Developing against it', [
        'docs/local-exchange',
        ['Local chains', 'packages/devnet/README'],
      ]),
      group('Inside', [
        ['Architecture', 'ARCHITECTURE'],
        ['Contributing', 'CONTRIBUTING'],
        ['Security', 'SECURITY'],
        'docs/adding-a-chain',
        'docs/releasing',
        'docs/simulation',
        'docs/chaos',
        'docs/fuzzing',
        'docs/mutation',
        ['Threshold engine', 'packages/threshold/README'],
        ['Checkout', 'packages/checkout/README'],
        ['Changes', 'CHANGELOG'],
      ]),
      group(
        'Areas of the platform',
        ['core', 'custody', 'commerce', 'events', 'console-api', 'server'].map(
          (area): [string, string] => [area, `packages/platform/src/${area}/README`],
        ),
      ),
      group('The protocol between nodes', [
        'docs/protocol/README',
        'docs/protocol/keys',
        'docs/protocol/signing',
        'docs/protocol/bans',
        'docs/protocol/messages',
        'docs/protocol/cryptography',
      ]),
      group('Decisions', decisions, true),
    ],
  },
  /** The site begins below /docs/, as the files do. */
  buildEnd({ outDir }) {
    writeFileSync(
      join(outDir, 'index.html'),
      '<!doctype html><meta charset="utf-8"><title>Custody</title><meta http-equiv="refresh" content="0; url=docs/"><a href="docs/">Custody</a>\n',
    )
  },
})
