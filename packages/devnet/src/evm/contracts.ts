import { readFileSync } from 'node:fs'
import type { Abi, Hex } from 'viem'
import { getContractAddress, hexToBytes, keccak256, toBytes, toHex } from 'viem/utils'
import { publicKeyToAddress } from 'viem/accounts'
import { publicKeyOf } from '../public-key.ts'

/**
 * Returns the deployer key of a contract. Each contract has its own deployer, so its address
 * depends only on its name, and a token that is added to the registry later gets the same address
 * on an existing chain.
 */
export function deployerKey(asset: string): Hex {
  return keccak256(toBytes(`local deployer of ${asset}`))
}

/** Returns the address of an asset's local contract, which follows from the asset's name alone. */
export const tokenAddress = (asset: string): Hex => deployedAddress(deployerKey(asset))

export function deployedAddress(key: Hex): Hex {
  return getContractAddress({
    from: publicKeyToAddress(toHex(publicKeyOf(hexToBytes(key)))),
    nonce: 0n,
  })
}

/** Returns a compiled contract of `packages/devnet/contracts`. */
export function artefact(name: string): { abi: Abi; bytecode: Hex; runtime: Hex } {
  return JSON.parse(
    readFileSync(new URL(`../../contracts/${name}.json`, import.meta.url), 'utf8'),
  ) as {
    abi: Abi
    bytecode: Hex
    runtime: Hex
  }
}
