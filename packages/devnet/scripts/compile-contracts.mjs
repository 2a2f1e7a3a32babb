// Compiles contracts/*.sol and writes one JSON artefact (ABI and bytecode) beside each source.
// Run by hand after a change: node packages/devnet/scripts/compile-contracts.mjs
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import solc from 'solc'

const folder = new URL('../contracts/', import.meta.url)
for (const file of readdirSync(folder).filter((name) => name.endsWith('.sol'))) {
  const output = JSON.parse(
    solc.compile(
      JSON.stringify({
        language: 'Solidity',
        sources: { [file]: { content: readFileSync(new URL(file, folder), 'utf8') } },
        settings: {
          evmVersion: 'paris',
          optimizer: { enabled: true, runs: 200 },
          metadata: { bytecodeHash: 'none' },
          outputSelection: {
            '*': { '*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object'] },
          },
        },
      }),
    ),
  )
  const errors = (output.errors ?? []).filter((error) => error.severity === 'error')
  if (errors.length > 0) throw new Error(errors.map((error) => error.formattedMessage).join('\n'))
  for (const [name, contract] of Object.entries(output.contracts[file])) {
    const artefact = {
      name,
      compiler: solc.version(),
      abi: contract.abi,
      bytecode: `0x${contract.evm.bytecode.object}`,
      runtime: `0x${contract.evm.deployedBytecode.object}`,
    }
    writeFileSync(new URL(`${name}.json`, folder), `${JSON.stringify(artefact, null, 2)}\n`)
    console.log(`${name}.json ${contract.evm.bytecode.object.length / 2} bytes`)
  }
}
