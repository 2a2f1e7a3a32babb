// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// Stands where roll-ups of the OP Stack have their GasPriceOracle. The fee grows with the size of the
/// transaction, as there; its price does not move, and is about what blobs have made of it. The local
/// engine asks this price and does not charge it.
contract GasPriceOracleLike {
    uint256 public constant l1BaseFee = 0.01 gwei;
    uint256 private constant SIGNATURE_BYTES = 68;

    function getL1Fee(bytes memory data) external pure returns (uint256) {
        return (data.length + SIGNATURE_BYTES) * 16 * l1BaseFee;
    }
}
