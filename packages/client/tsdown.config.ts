import { viteDynamicImportVarsPlugin, viteImportGlobPlugin } from 'rolldown/experimental'
import { defineConfig } from 'tsdown'

/**
 * What npm gets: this package with what it takes of the house's others in it; libraries stay
 * dependencies.
 */
export default defineConfig({
  entry: {
    index: 'src/index.ts',
    approvals: 'src/approvals/approvals.ts',
    'verify-address': 'src/trust/verify-address.ts',
    'verify-reserves': 'src/reserves/verify-reserves.ts',
  },
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  fixedExtension: false,
  clean: true,
  dts: { generator: 'oxc' },
  deps: { alwaysBundle: [/^@custody\//], neverBundle: [/^(?!@custody\/)[a-z@]/] },
  // A chain family's addresses are asked for by the family's name.
  plugins: [
    viteDynamicImportVarsPlugin({ sourcemap: false }),
    viteImportGlobPlugin({ sourcemap: false }),
  ],
  logLevel: 'warn',
})
