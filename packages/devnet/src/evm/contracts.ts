import { readFileSync } from 'node:fs'
import type { Abi, Hex } from 'viem'
import { getContractAddress, hexToBytes, keccak256, toBytes, toHex } from 'viem/utils'
import { publicKeyToAddress } from 'viem/accounts'
import { publicKeyOf } from '../public-key.ts'

/**
 * Each contract has a deployer of its own, so that its address depends on nothing but its name, and
 * a token that joins the registry later finds its place on a chain that exists already.
 */
export function deployerKey(asset: string): Hex {
  return keccak256(toBytes(`local deployer of ${asset}`))
}

/** Where the local contract of an asset stands: it follows from the asset's name alone. */
export const tokenAddress = (asset: string): Hex => deployedAddress(deployerKey(asset))

export function deployedAddress(key: Hex): Hex {
  return getContractAddress({
    from: publicKeyToAddress(toHex(publicKeyOf(hexToBytes(key)))),
    nonce: 0n,
  })
}

/** A compiled contract of `packages/devnet/contracts`. */
export function artefact(name: string): { abi: Abi; bytecode: Hex; runtime: Hex } {
  return JSON.parse(
    readFileSync(new URL(`../../contracts/${name}.json`, import.meta.url), 'utf8'),
  ) as {
    abi: Abi
    bytecode: Hex
    runtime: Hex
  }
}
