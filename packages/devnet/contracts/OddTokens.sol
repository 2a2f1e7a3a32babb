// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// For tests only: says false where others revert, so that a receipt's status alone proves nothing.
contract FalseLike {
    uint8 public constant decimals = 6;
    mapping(address => uint256) public balanceOf;
    bool public frozen;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(uint256 supply) {
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function freeze(bool on) external {
        frozen = on;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        if (frozen || balanceOf[msg.sender] < value) return false;
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

/// For tests only: keeps a hundredth of every transfer, as some production tokens can.
contract FeeLike {
    uint8 public constant decimals = 6;
    address public immutable collector;
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);

    constructor(uint256 supply) {
        collector = msg.sender;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        uint256 fee = value / 100;
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value - fee;
        balanceOf[collector] += fee;
        emit Transfer(msg.sender, to, value - fee);
        emit Transfer(msg.sender, collector, fee);
        return true;
    }
}
